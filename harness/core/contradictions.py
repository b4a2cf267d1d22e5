"""Contradictions between a server's statements about a reply, the reply's text and the request.

A contradiction changes no sample and no grade. A session counts the replies of each kind; the end of `run` and the
score have one sentence about the kinds that more than one in a thousand replies show. `CHECKS` is the table of the
kinds that a single reply can show; a session also compares replies (`PROMPT_VARIES`, `UNSTATED`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from harness.core.number_text import count_noun
from harness.core.records import Usage
from harness.core.reply_notes import TOOL_WORDS, ending

SLACK_TOKENS = 16
"""Tokens by which valid counts may differ, as some exclude special tokens. A max_tokens below this is not checked."""

MAX_TOKEN_BYTES = 32
"""Largest mean number of bytes per token over a text of `LONG_BYTES` or more."""

USUAL_TOKEN_BYTES = 12
"""A usage with at most this many bytes of text per token, on average, is taken to count the whole text."""

LONG_BYTES = 1024

MAX_EVENTS_PER_STATED = 1.25
"""Factor by which events may exceed stated tokens, in addition to `SLACK_TOKENS`: a token may come in two events."""

MIN_SHARE = 0.001
"""A kind of contradiction is reported if more than this fraction of the replies show it."""


class Claims(NamedTuple):
    """What a reply states and what it contains.

    usage, total: as stated and added up (`token_counts`), before counts that cannot be true are dropped. n_bytes: the
    UTF-8 length of its text and reasoning. has_reasoning: whether it has reasoning. n_events: number of events with
    text. has_other: whether it contains a tool call or a refusal, whose text is not read. is_open: whether its text
    opens reasoning but never closes it. max_tokens: as sent; None: not sent.
    """

    usage: Usage
    total: int | None
    finish_reason: str
    n_bytes: int
    has_reasoning: bool
    n_events: int
    has_other: bool
    is_open: bool
    max_tokens: int | None

    @property
    def n_stated(self) -> int:
        """The number of tokens that the usage states; 0 if it states none."""
        return self.usage.completion_tokens or 0

    @property
    def tokens(self) -> int:
        """The number of tokens that the usage states, or the number of events, whichever is larger."""
        return max(self.n_stated, self.n_events)


def _ends_at_limit(of: Claims) -> bool:
    limit, tokens = of.max_tokens or 0, of.n_stated or of.n_events
    if of.finish_reason == "completed":  # SGLang's Responses API subtracts 2 tokens from the limit
        limit -= 2
    return ending(of.finish_reason) == "end" and SLACK_TOKENS <= limit <= tokens <= limit + SLACK_TOKENS


def _is_cut_early(of: Claims) -> bool:
    is_known = of.tokens > 0 and of.n_bytes <= USUAL_TOKEN_BYTES * of.tokens
    return ending(of.finish_reason) == "cut" and is_known and 2 * of.tokens < (of.max_tokens or 0)


def _exceeds_text(of: Claims) -> bool:
    hidden = 0 if of.has_reasoning else of.usage.reasoning_tokens or 0
    return not of.has_other and of.n_stated - hidden > of.n_bytes + 2 * SLACK_TOKENS


def _states_too_few(of: Claims) -> bool:
    more_events = of.n_events > MAX_EVENTS_PER_STATED * of.n_stated and of.n_events >= of.n_stated + SLACK_TOKENS
    return of.n_stated != 0 and (more_events or of.n_bytes > max(LONG_BYTES, MAX_TOKEN_BYTES * of.n_stated))


def _reasoning_exceeds(of: Claims) -> bool:
    completion = of.usage.completion_tokens
    return completion is not None and (of.usage.reasoning_tokens or 0) > completion


ENDS_AT_LIMIT = "report a normal end at max_tokens tokens, so truncated replies may not be counted"
CUT_EARLY = "report truncation with less than half of max_tokens"
TOO_FEW_STATED = "report fewer tokens than they have"
TOO_MANY_STATED = "report more tokens than their text can have (hidden reasoning or other requests included)"
UNCLOSED = "end normally inside unclosed reasoning, so they have no answer"
CHECKS: dict[str, Callable[[Claims], bool]] = {
    ENDS_AT_LIMIT: _ends_at_limit,
    "report more tokens than max_tokens": lambda of: (
        of.max_tokens is not None and of.n_stated > of.max_tokens + SLACK_TOKENS
    ),
    CUT_EARLY: _is_cut_early,
    TOO_MANY_STATED: _exceeds_text,
    TOO_FEW_STATED: _states_too_few,
    "report 0 tokens for a text": lambda of: of.usage.completion_tokens == 0 and of.n_bytes > 0,
    "report more reasoning tokens than tokens": _reasoning_exceeds,
    "report a total below the sum of its parts": lambda of: (
        of.total is not None and of.total < (of.usage.prompt_tokens or 0) + of.n_stated
    ),
    "end with a tool call but contain none": lambda of: of.finish_reason.lower() in TOOL_WORDS and not of.has_other,
    UNCLOSED: lambda of: of.is_open and ending(of.finish_reason) == "end",
}
"""The words that follow "N replies" → whether a reply shows the contradiction."""

ECHOED = ("reasoning.effort", "text.format")
"""Paths of the settings that a reply may repeat, as replies of the Responses API do."""

CHANGED = {path: f"report another {path} than was sent" for path in ECHOED}
ARRIVED = {path: f"state the {path} that was sent" for path in ECHOED}
"""Path of a setting → the words that follow "N replies". `ARRIVED` is no contradiction."""

PROMPT_VARIES = "report another length for a prompt than earlier replies"
UNSTATED = "report no usage, although others do"

KINDS = (*CHECKS, *CHANGED.values(), PROMPT_VARIES, UNSTATED)

FORMER = {
    "state more tokens than their text can hold (a hidden reasoning, or other requests counted, too)": TOO_MANY_STATED,
    "end by themselves inside a reasoning that never closes, so that they give no answer": UNCLOSED,
    "state a total below the sum of its parts": "report a total below the sum of its parts",
    "say that they were cut, with less than half of max_tokens": CUT_EARLY,
    "state more tokens than max_tokens": "report more tokens than max_tokens",
    **{f"state another {path} than was sent": words for path, words in CHANGED.items()},
    "end by themselves at max_tokens tokens, so they may be cut, and do not count so": ENDS_AT_LIMIT,
    "state fewer tokens than came": TOO_FEW_STATED,
    "state 0 tokens of a text": "report 0 tokens for a text",
    "state more tokens of reasoning than tokens": "report more reasoning tokens than tokens",
    "end with a tool call and hold none": "end with a tool call but contain none",
    "state another length of a prompt than an equal prompt had before": PROMPT_VARIES,
    "state no usage, though others do": UNSTATED,
}
"""Wording in earlier logs → current wording."""


def sentence(notes: Mapping[str, int], n_replies: int) -> str:
    """The warning about the contradictions among `notes` (note → number of replies); "" if there are few."""
    counts = {kind: notes.get(kind, 0) for kind in KINDS}
    if counts[UNSTATED] >= n_replies:  # a server that reports no usage
        counts[UNSTATED] = 0
    shown = [f"{n:,} {kind}" for kind, n in counts.items() if n > MIN_SHARE * n_replies]
    if not shown:
        return ""
    of_replies = f"of {count_noun(n_replies, 'reply', 'replies')} {'; '.join(shown)}"
    return f"the server's numbers contradict each other, its texts or the request: {of_replies}"


def contradictions(claims: Claims) -> list[str]:
    """The kinds of contradictions that a reply shows by itself."""
    return [kind for kind, shows in CHECKS.items() if shows(claims)]


def echoes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of `ECHOED` that a request or its reply contains: path → value."""
    found = {}
    for path in ECHOED:
        outer, inner = path.split(".")
        part = fields.get(outer)
        if isinstance(part, Mapping) and part.get(inner) is not None:
            found[path] = part[inner]
    return found


def of_settings(sent: Mapping[str, Any], stated: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each setting that was sent and is stated: whether both agree. sent, stated: from `echoes`."""
    for path in sent.keys() & stated.keys():
        yield (ARRIVED if _holds(stated[path], sent[path]) else CHANGED)[path]


def _holds(stated: Any, sent: Any) -> bool:
    """Whether a value is stated as it was sent; an object may have additional fields."""
    if isinstance(sent, Mapping):
        return isinstance(stated, Mapping) and all(_holds(stated.get(name), value) for name, value in sent.items())
    return bool(stated == sent)
