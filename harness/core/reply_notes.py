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
LOST_CALL = "a call of the tool that the server has not read as one"
AFTER_LEFTOVER = "its server has sent replies that nobody asked for"

AFTER_THE_END = frozenset({LATE_TEXT, LATE_BYTES, LATE_BODY})
"""The notes about bytes that came after a reply was complete."""

NO_END = frozenset({LATE_TEXT, SECOND_FINISH})
"""The notes of replies whose finish reason did not end their text, so that one cut off behind it may lack a part."""

DOUBTFUL = AFTER_THE_END | {
    AFTER_LEFTOVER, SECOND_FINISH, MORE_CHOICES, IDS_VARY, UNREAD_TEXT, RENAMED, FILTERED, UNKNOWN_END,
    ALL_REASONING, CUMULATIVE, "its usage states fewer tokens than came as events",  # in earlier logs
}  # fmt: skip
"""All notes. A note begins with one of these texts, and some go on with names or numbers."""
