"""Texts that a stream sends twice: each piece again, a last piece that is the whole text, a stream that begins again.

A model may repeat itself, too, so the server's count of tokens decides. An event with text has at least one token: if
the count has no room for the repetition's tokens, the repetition is the stream's.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.contradictions import MAX_EVENTS_PER_STATED
from harness.core.reply_notes import REPEATED

ONCE = f"{REPEATED} and stored once"
AS_SENT = f"{REPEATED}, it seems, and stored as sent"
"""The notes on a reply: with a count or a whole message that decides, and without."""

_MIN_EVENTS = 4
"""Number of events with text below which a repetition is chance."""

_MIN_CHARS = 12
"""Length of the shortest repetition that is noted without a count of tokens, or of the shortest first beginning."""

_MAX_COUNTED = 0.75
"""Largest share of a repetition's tokens, estimated by its characters, that a count without them may seem to have."""

_MAX_PLACES = 100
"""Number of places at which a text is searched for its second beginning."""


def without_repetition(
    texts: Sequence[str], last: Sequence[str], halved: Sequence[str], n_events: int, n_stated: int
) -> tuple[Sequence[str], str]:
    """The texts without what the stream repeats, and the note on the repetition; "" if there is none.

    last: the last piece of each text. halved: every second piece, or the text unless each piece came twice. n_events:
    number of events with text. n_stated: the server's count of their tokens; 0 if it states none.
    """
    note, n_chars = "", sum(map(len, texts))
    shortest = max(_MIN_CHARS, -(-3 * n_chars // (2 * n_events or 1)))  # more than one event
    by_last = [piece if text == piece * 2 else text for text, piece in zip(texts, last, strict=True)]
    by_beginning = [text[_second_beginning(text, shortest) :] for text in texts]
    for once in (by_last, halved, by_beginning):
        if n_events < _MIN_EVENTS or not (n_again := n_chars - sum(map(len, once))):
            continue
        is_last = once is by_last
        n_first = n_events - 1 if is_last else n_events * (1 - n_again / n_chars)
        n_sent = n_first * n_chars / (n_chars - n_again) if is_last else n_events
        has_first = n_stated > 0 and n_first <= MAX_EVENTS_PER_STATED * n_stated + 1
        if has_first and n_stated < n_sent - 1 and n_stated <= n_first + _MAX_COUNTED * (n_sent - n_first):
            return once, ONCE
        if is_last or (n_again >= _MIN_CHARS and not n_stated):
            note = AS_SENT
    return texts, note


def _second_beginning(text: str, shortest: int) -> int:
    """The position at which the whole text before it, `shortest` characters or more, follows again; 0 if there is none.
    A beginning that is itself a repetition does not count, since models repeat words and digits.
    """
    at = shortest - 1
    for _ in range(_MAX_PLACES):
        at = text.find(text[:shortest], at + 1, len(text) // 2 + shortest)
        if at < 0:
            break
        if text.startswith(beginning := text[:at], at) and (beginning * 2).find(beginning, 1) == at:
            return at
    return 0
