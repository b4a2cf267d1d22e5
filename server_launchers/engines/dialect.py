"""How the servers of one engine are known by their answers, and what differs in speaking to them. Values only.

Every value has its source: the engine's own code or documentation, or a running server on which it was seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

MODELS = "/models"
"""The one page below the base URL; all others stand at the server's root."""

FactKind = Literal["model", "host"]

Body = dict[str, Any]


class FactField(msgspec.Struct, frozen=True):
    """Where a page states one fact of a server.

    path: keys from the page's object (of `MODELS`: from the entry of the model) down to the value. kind: "model" where
    the fact changes the distribution of replies. digest: only the value's digest is kept, the text being long.
    """

    name: str
    kind: FactKind
    page: str
    path: tuple[str, ...]
    digest: bool = False


def stated_at(page: str, kind: FactKind, within: tuple[str, ...] = (), **names: str) -> tuple[FactField, ...]:
    """Facts of one page: name → key below `within`; a slash in the key leads one object down."""
    return tuple(FactField(name, kind, page, (*within, *key.split("/"))) for name, key in names.items())


class Neutral(msgspec.Struct, frozen=True):
    """values: by the engine's name of a sampling field, what leaves the distribution as it is. source: where that is
    read."""

    values: Mapping[str, Any]
    source: str


class Reading(msgspec.Struct, frozen=True):
    """Where a page states a number. path: keys from the page's object down to the number; a list on the way stands for
    the first of its objects that has the next key."""

    page: str
    path: tuple[str, ...]

    def value(self, page: Mapping[str, Any]) -> object:
        """What stands there; None where the page states nothing."""
        value: object = page
        for key in self.path:
            if isinstance(value, list):
                value = next((part for part in value if isinstance(part, Mapping) and key in part), None)
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


def exactly(text: str) -> str:
    """The regular expression of this text alone, as engines' grammars read one: a blank stands for itself."""
    return re.escape(text).replace("\\ ", " ")


def prompt_body(model: str, text: str, special: bool) -> Body:
    """The body of POST /tokenize for a text. special: the text begins a prompt, and gets the tokens that begin one."""
    return {"model": model, "prompt": text, "add_special_tokens": special}


class TokenPages(msgspec.Struct, frozen=True):
    """The pages about tokens: POST /tokenize and /detokenize, which all engines here have under these names.

    of_text: the body for (model, text, special). template: the page that turns messages into text; None where /tokenize
    takes messages itself. of_pieces: the body for texts, each of which becomes tokens of its own with the piece of text
    that each token is; on such engines an event of a stream is one token. None where texts are not split so.
    """

    of_text: Callable[[str, str, bool], Body] = prompt_body
    template: str | None = None
    of_pieces: Callable[[Sequence[str]], Body] | None = None


class RequestFact(msgspec.Struct, frozen=True):
    """How one wish is written in a chat request. page: where that is documented; checked: it was read there."""

    page: str
    checked: bool
    path: tuple[str, ...] = ()
    """Keys from the body down to the field, where the wish is a number."""
    body: Mapping[str, Any] = {}
    """Fields of the body, where it is a switch."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """What the servers of one engine say of themselves, and how they are spoken to. The defaults: nothing is known.

    A model list tells the engine: an entry by `owned_by`, or by the key `marks` that holds an object on no other
    engine; a list that hides its models by the name `hides_behind`.
    """

    name: str
    """As facts, reports and run folders have it."""
    source: str = ""
    """Address of the page that documents `facts`."""
    owned_by: str = ""
    marks: str = ""
    hides_behind: str = ""
    workers: str = ""
    """The page that lists the servers behind a router."""
    facts: tuple[FactField, ...] = ()
    context: Reading | None = None
    """Tokens of one request, where the entry of the model does not state them."""
    at_once: tuple[Reading, ...] = ()
    """Requests that run at once, by the first page that states them."""
    neutral: Neutral | None = None
    """None: the engine fills nothing that is known of."""
    names: Mapping[str, str] = {}
    """Our name of a sampling field → the engine's, where they differ."""
    tokens: TokenPages | None = None
    states_ids: frozenset[str] = frozenset()
    """The protocols ("chat", "completions") whose streams state token ids when asked (`return_token_ids`)."""
    names_ids: bool = False
    """Whether log-probabilities name tokens by id when asked (`return_tokens_as_token_ids`)."""
    held_to: Callable[[str], Body] | None = None
    """The fields that hold a reply to exactly this text, by the engine's grammar."""
    too_long: tuple[str, ...] = ()
    """Patterns of what a refusal says of a prompt that is longer than the context."""
    thinking_budget: RequestFact | None = None
    """The field that bounds the tokens of thinking."""
    prefill: RequestFact | None = None
    """Fields by which a begun message of the assistant goes on."""
    inspect_name: str = ""
    """The name of the provider in Inspect's logs; empty where it has none."""

    @property
    def pages(self) -> tuple[str, ...]:
        """The pages to be read for facts beside the model list, each once."""
        return tuple(dict.fromkeys(fact.page for fact in self.facts if fact.page != MODELS))

    @property
    def event_is_token(self) -> bool:
        """Whether each event of a stream is one token, whose text is known by the lengths of events."""
        return self.tokens is not None and self.tokens.of_pieces is not None

    def owns(self, entry: Mapping[str, Any]) -> bool:
        """Whether the entry of a model list names this engine."""
        return bool(self.owned_by) and entry.get("owned_by") == self.owned_by

    def marked(self, entry: Mapping[str, Any]) -> bool:
        """Whether the entry has a key that no other engine's has."""
        return bool(self.marks) and isinstance(entry.get(self.marks), Mapping)
