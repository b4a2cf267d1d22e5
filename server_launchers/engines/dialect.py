"""How the servers of an engine are recognised by their answers, and how requests to them differ. Values only.

Every value has its source: the engine's own code or documentation, or a running server that showed it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from server_launchers.program import since

MODELS = "/models"
"""Path of the model list. It is the only page below the base URL; all others stand at the server's root."""

FactKind = Literal["model", "host"]
"""Whether a fact changes the distribution of replies ("model") or not ("host")."""

Body = dict[str, Any]
"""The body of a request, as JSON."""


class FactField(msgspec.Struct, frozen=True):
    """Where a page states one fact about a server.

    path: keys from the page's object (in `MODELS`: from the model's entry) down to the value. kind: "model" if the fact
    changes the distribution of replies. digest: only the digest of a long text is kept.
    """

    name: str
    kind: FactKind
    page: str
    path: tuple[str, ...]
    digest: bool = False


def stated_at(page: str, kind: FactKind, within: tuple[str, ...] = (), **names: str) -> tuple[FactField, ...]:
    """The fields of one page that state facts. names: fact → its key in the object at `within`; `a/b` is key b of a."""
    return tuple(FactField(name, kind, page, (*within, *key.split("/"))) for name, key in names.items())


class Neutral(msgspec.Struct, frozen=True):
    """Sampling values that leave the distribution unchanged, by the engine's names of the fields.

    source: where the engine defines them.
    """

    values: Mapping[str, Any]
    source: str


class Reading(msgspec.Struct, frozen=True):
    """Where a page states a number.

    path: keys from the page's object down to the number. Where the path meets a list, it goes on in the first of the
    list's objects that has the next key.
    """

    page: str
    path: tuple[str, ...]

    def value(self, page: Mapping[str, Any]) -> object:
        """The value at the end of `path` in `page`; None where the page has none."""
        value: object = page
        for key in self.path:
            if isinstance(value, list):
                value = next((part for part in value if isinstance(part, Mapping) and key in part), None)
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


def prompt_body(model: str, text: str, special: bool) -> Body:
    """The body of POST /tokenize for a text. special: add the tokens that begin a prompt."""
    return {"model": model, "prompt": text, "add_special_tokens": special}


class TokenPages(msgspec.Struct, frozen=True):
    """The pages about tokens: POST /tokenize and /detokenize, which have these names on all engines here.

    of_text: makes the body for (model, text, special). template: the page that turns messages into text; None where
    /tokenize takes messages itself.
    """

    of_text: Callable[[str, str, bool], Body] = prompt_body
    template: str | None = None


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """What the servers of one engine state about themselves, and how to speak to them. By default nothing is known.

    A model list reveals the engine: by `owned_by` in an entry, or by the key `marks`, whose object no other engine has.
    A router's list, which hides its workers' models, is recognised by the name `hides_behind`.
    """

    name: str
    """The engine's name in facts, reports and run folders."""
    source: str = ""
    """Address of the page that documents `facts`."""
    owned_by: str = ""
    marks: str = ""
    hides_behind: str = ""
    facts: tuple[FactField, ...] = ()
    context: Reading | None = None
    """Where the server states how many tokens one request may use, if the model's entry does not."""
    at_once: tuple[Reading, ...] = ()
    """Where the server states how many requests run at once; the first page that states it counts."""
    neutral: Neutral | None = None
    """Sampling values that replace the server's own defaults; None if servers of this engine are not known to have any.
    """
    names: Mapping[str, str] = {}
    """Our name of a sampling field → the engine's, where they differ."""
    tokens: TokenPages | None = None
    states_ids: frozenset[str] = frozenset()
    """The protocols ("chat", "completions") whose streams state token ids when asked (`return_token_ids`)."""
    goes_on: Mapping[str, Any] = {}
    """Fields that keep a reply going past the model's own end, up to max_tokens."""
    obeys: Mapping[str, Mapping[str, tuple[int, ...]]] = {}
    """API → sampling field beyond those of the API → the version from which the servers obey it; before, they drop it
    without a word. Read in the request classes of their packages.
    """
    too_long: tuple[str, ...] = ()
    """Patterns of the error text for a prompt that is longer than the context."""
    dead: tuple[str, ...] = ()
    """Patterns of the error text of a server that goes on answering though its engine has died."""
    writes_by_schema: bool = False
    """Whether a chat request's `response_format` makes the reply fit a JSON schema."""
    reads_prompts: Literal["", "prompt_logprobs", "input_token_logprobs"] = ""
    """The field in which a reply states the log-probabilities of the prompt's tokens; empty where none does."""
    thinking_budget: tuple[str, ...] = ()
    """The field that bounds the tokens of thinking."""

    def obeyed(self, api: str, version: str) -> frozenset[str]:
        """The sampling fields of `obeys` that servers of this version obey."""
        return frozenset(field for field, first in self.obeys.get(api, {}).items() if since(version, first))

    @property
    def pages(self) -> tuple[str, ...]:
        """The pages to read for facts besides the model list, each once."""
        return tuple(dict.fromkeys(fact.page for fact in self.facts if fact.page != MODELS))
