"""What a client notes of a reply that leaves a doubt whether its text is the whole answer to its request.

The client writes these notes, a run's log counts them, and a score says how many replies bear each.
"""

from __future__ import annotations

LATE_TEXT = "text after the finish reason"
LATE_BYTES = "bytes after the finish reason that are no events"
LATE_BODY = "bytes after [DONE]"
SECOND_FINISH = "a second finish reason, equal to the first"
MORE_CHOICES = "choices of another index, which are not read"
IDS_VARY = "each event has an id of its own"
UNREAD_TEXT = "a field of the message that is not read"
"""The note goes on with the field's name."""
RENAMED = "the model's name changes inside the stream"
"""The note goes on with both names."""
AFTER_LEFTOVER = "its server has sent replies that nobody asked for"
"""The note goes on with the number of replies before it that may be wrong."""

AFTER_THE_END = frozenset({LATE_TEXT, LATE_BYTES, LATE_BODY})
"""Notes on what came after a reply was complete."""

DOUBTFUL = AFTER_THE_END | {SECOND_FINISH, MORE_CHOICES, IDS_VARY, UNREAD_TEXT, RENAMED, AFTER_LEFTOVER}
"""All of them; a note begins with one of these."""
