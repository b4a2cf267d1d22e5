"""The notes that a client attaches to a reply whose text may not be the whole answer to its request.

The client's parser chooses the notes (`harness.client.protocol.sse`). A run's log counts them, and a score says how
many replies have each. A reply may have several.
"""

from __future__ import annotations

LATE_TEXT = "text after the finish reason"
LATE_BYTES = "bytes after the finish reason that are no events"
LATE_BODY = "bytes after [DONE]"
SECOND_FINISH = "a second finish reason, equal to the first"
MORE_CHOICES = "choices of another index, which are not read"
IDS_VARY = "each event has an id of its own"
UNREAD_TEXT = "a field of the message that is not read"
"""After these words the note names the field."""
RENAMED = "the model's name changes inside the stream"
"""After these words the note gives both names."""
FILTERED = "its finish reason is that of a filter or a refusal"
UNKNOWN_END = "its finish reason is a word that is not known"
"""After these words, and those above, the note gives the finish reason."""
ALL_REASONING = "its text is empty and its reasoning is not, though it ended by itself"
CUMULATIVE = "each event repeated the text before it; the last one was taken"
AFTER_LEFTOVER = "its server has sent replies that nobody asked for"

TOO_FEW_STATED = "its usage states fewer tokens than came as events"
"""The run's counts give this note; see `states_too_few`."""

MAX_EVENTS_PER_STATED = 1.25
MIN_EVENTS_ABOVE_STATED = 16
"""A usage states too few tokens if the events are more by this factor and by this many; a token may come in two."""

AFTER_THE_END = frozenset({LATE_TEXT, LATE_BYTES, LATE_BODY})
"""The notes about bytes that came after a reply was complete."""

NO_END = frozenset({LATE_TEXT, SECOND_FINISH})
"""The notes of replies whose finish reason did not end their text, so that one cut off behind it may lack a part."""

DOUBTFUL = AFTER_THE_END | {
    AFTER_LEFTOVER, SECOND_FINISH, MORE_CHOICES, IDS_VARY, UNREAD_TEXT, RENAMED, TOO_FEW_STATED, FILTERED, UNKNOWN_END,
    ALL_REASONING, CUMULATIVE,
}  # fmt: skip
"""All notes. A note begins with one of these texts, and some go on with names or numbers."""


def states_too_few(stated: int | None, events: int | None) -> bool:
    """Whether a reply brought many more token events than its usage states tokens, so that the usage is false.

    The opposite is no sign: one event may bring several tokens, and a server may hide its reasoning.
    """
    if stated is None or events is None:
        return False
    return events > MAX_EVENTS_PER_STATED * stated and events >= stated + MIN_EVENTS_ABOVE_STATED
