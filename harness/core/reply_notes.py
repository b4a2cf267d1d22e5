"""How a reply ended, and what was odd about it: finish reasons and the client's notes.

Finish reasons are the words with which servers say how a completion ended; case is ignored.

The client attaches a note to a reply whose text may not be the whole answer to its request. Its parser chooses the
notes (`harness.client.protocol.sse`). A run's log counts them, and a score reports how many replies have each. A reply
may have several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

# ---- finish reasons


Ending = Literal["end", "cut", "break", "filter", "unknown"]
"""end: the model stopped · cut: a limit · break: a server failure · filter: a filter or refusal · unknown: any other
word."""

TOOL_WORDS = frozenset({"tool_calls", "function_call", "tool_use"})
"""Finish reasons that mean that the reply ended with a call."""

WORDS: dict[Ending, str] = {
    "end": f"stop eos eos_token end_turn stop_sequence stop_token stop_str completed complete {' '.join(TOOL_WORDS)}",
    "cut": "length max_tokens model_length max_output_tokens max_new_tokens max_length incomplete "
    "model_context_window_exceeded max_steps context turn_rejected",
    "break": "abort aborted error failed network_error timeout cancelled canceled insufficient_system_resource",
    "filter": "content_filter content-filter content_filtered guardrail_intervened safety sensitive refusal recitation "
    "prohibited_content blocklist spii",
}
"""Meaning → finish reasons."""
MAX_STEPS, CONTEXT, REJECTED = "max_steps", "context", "turn_rejected"
"""Our own words: the last step allowed for a sample with a tool made calls; the context has no room for another; the
server rejected a later turn of a conversation.
"""

Limit = Literal["tokens", "steps", "context", "rejected"]
"""The reasons why a sample is cut off: the limit on its new tokens, on its steps with a tool, the server's context, or
the server's rejection of a turn.
"""

_OTHER_LIMITS: dict[str, Limit] = {
    MAX_STEPS: "steps",
    CONTEXT: "context",
    REJECTED: "rejected",
    "model_context_window_exceeded": "context",
}
"""Words for "cut" that mean a limit other than the one on new tokens."""

_ENDINGS = {word: ending for ending, words in WORDS.items() for word in words.split()}


def ending(finish_reason: str) -> Ending:
    """What the finish reason says."""
    return _ENDINGS.get(finish_reason.lower(), "unknown")


def limit_of(finish_reason: str) -> Limit | None:
    """The limit that cut the sample; None if none did."""
    return _OTHER_LIMITS.get(finish_reason.lower(), "tokens") if ending(finish_reason) == "cut" else None


# ---- notes


LATE_TEXT = "text after the finish reason"
LATE_BYTES = "bytes after the finish reason that are not events"
LATE_BODY = "bytes after [DONE]"
SECOND_FINISH = "a second finish reason"
"""The note continues with the finish reason."""
MORE_CHOICES = "choices with another index, which are ignored"
IDS_VARY = "the id changes inside the stream"
UNREAD = "that is not read"
"""Words of every note on a part of a reply that is not read."""
UNREAD_TEXT = f"a field of the message {UNREAD}"
"""The note continues with the name of the field."""
NO_PLACE = "an event without the field that holds a text"
FAULT = "the server reported an error inside the reply, which continued"
"""The note continues with the error."""
RENAMED = "the model's name changes inside the stream"
"""The note continues with both names."""
FILTERED = "its finish reason is a filter or a refusal"
UNKNOWN_END = "its finish reason is unknown"
"""The note continues with the finish reason, as does the one above."""
ALL_REASONING = "it has reasoning but no text, although it ended normally"
NO_TEXT = "it has no text, and no limit cut it"
"""The note continues with the cause: one of those in `_CAUSES` with its name, or that nothing was sent."""
CUMULATIVE = "each event repeated the earlier text; the last event was used"
ODD_END = "its last event contradicts the earlier events, which were used"
RESTATED = "its final text differs from its pieces and was used"
ODD_BYTES = "its JSON contains invalid UTF-8, which was replaced, or control characters"
REPEATED = "text was sent twice"
"""The note continues with how it was stored."""
PROMPT_CUT = "its prompt was probably truncated by the server"
"""The note continues with the numbers of tokens and characters."""
AFTER_LEFTOVER = "its server has sent unrequested replies"

AFTER_THE_END = frozenset({LATE_TEXT, LATE_BYTES, LATE_BODY})
"""The notes about bytes that arrived after a reply was complete."""

NO_END = frozenset({LATE_TEXT, SECOND_FINISH})
"""The notes on replies that did not end with their finish reason: if cut off later, they may be incomplete."""

DOUBTFUL = AFTER_THE_END | {
    AFTER_LEFTOVER,
    SECOND_FINISH,
    FAULT,
    MORE_CHOICES,
    IDS_VARY,
    UNREAD_TEXT,
    NO_PLACE,
    RENAMED,
    FILTERED,
    UNKNOWN_END,
    ALL_REASONING,
    NO_TEXT,
    CUMULATIVE,
    ODD_END,
    RESTATED,
    ODD_BYTES,
    REPEATED,
    PROMPT_CUT,
}
"""All notes. A note begins with one of these texts; some continue with names or numbers."""

FORMER = frozenset(
    {
        "its usage states fewer tokens than came as events",
        "bytes after the finish reason that are no events",
        "choices of another index, which are not read",
        "its last event contradicts the events before it, which were taken",
        "each event repeated the text before it; the last one was taken",
        "its text is empty and its reasoning is not, though it ended by itself",
        "its finish reason is a word that is not known",
        "its finish reason is that of a filter or a refusal",
        "each event has an id of its own",
        "each event has a different id",
        "its end states another text than its pieces, which was taken",
        "its server has sent replies that nobody asked for",
    }
)
"""The beginnings of notes that are worded differently today. Earlier logs have these words, so they cannot change."""

_CAUSES = {
    "refusal": "a refusal",
    "tool call": "a tool call",
    FILTERED: "a filter or a refusal",
    UNREAD_TEXT: f"a field {UNREAD}",
}
"""The beginning of another note on a reply without text → why it has none; the first match is used."""


def without_text(notes: Sequence[str], *, has_reasoning: bool) -> tuple[str, ...]:
    """The notes on a reply that has no text and was not cut. notes: those that any reply may have.

    A note that is the cause is mentioned only once, as the cause.
    """
    for sign, cause in _CAUSES.items():
        said = next((note for note in notes if note.startswith(sign)), None)
        if said is not None and not (has_reasoning and sign == UNREAD_TEXT):
            others = (note for note in notes if note != said or sign not in DOUBTFUL)
            return (*others, f"{NO_TEXT}: {cause}{said.removeprefix(sign)}")
    return (*notes, ALL_REASONING if has_reasoning else f"{NO_TEXT}: nothing was sent")
