"""Warnings about replies that leave a doubt, as the sessions of a run counted them."""

from __future__ import annotations

import contextlib
from collections import Counter

import msgspec

from harness.core import codec
from harness.core.files import open_untrusted
from harness.core.inert import quoted
from harness.core.reply_notes import DOUBTFUL
from harness.runs import RunFolder

MAX_NOTES = 20
"""Most kinds of doubt that are named; some contain a server's own words, so their number is open."""

_MAX_LINE_BYTES = 64 * 1024


class _EndedSession(msgspec.Struct, frozen=True):
    """The fields of a line of `log.jsonl` that hold the counts of doubts."""

    event: str
    notes: dict[str, int] = {}


def reply_doubts(folder: RunFolder) -> list[str]:
    """A sentence for each kind of doubt, the most frequent first, and one for each log that cannot be read, such as a
    link. The log does not tell one benchmark of a run from another. A session that was killed has left no counts."""
    counts: Counter[str] = Counter()
    unread = []
    for path in folder.logs():
        try:
            with open_untrusted(path) as log:
                for line in log:
                    if b'"session_ended"' in line and len(line) <= _MAX_LINE_BYTES:
                        with contextlib.suppress(codec.DecodeError):
                            session = codec.decode(line, _EndedSession)
                            counts.update(session.notes if session.event == "session_ended" else {})
        except OSError as error:
            unread.append(f"doubts about replies are not known from {quoted(path.name)}: {error.strerror or error}")
    doubts = [(note, n) for note, n in counts.most_common() if n > 0 and note.startswith(tuple(DOUBTFUL))]
    return [
        f"{n} {'reply' if n == 1 else 'replies'} of this run: {quoted(note)}" for note, n in doubts[:MAX_NOTES]
    ] + unread[:MAX_NOTES]
