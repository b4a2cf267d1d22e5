"""The bytes of one response, in reads with stamps → its parser: many token events in one step where that is possible.

Three ways lead to the parser, the fastest that fits first; all three give the same reply:

    way          what fits                                            a token costs
    template     a run of chunks, one learnt event each               a share of one regular expression and one decoding
    event        a chunk that is one event on one line                a decoding of the fields that matter
    general      anything else: heads, split chunks, CRLF, errors     a walk through chunks, lines and events

Invariant: the first two are taken at a chunk's and an event's border only, and end at one. Splits of the bytes never
change the outcome.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from harness.client.protocol.event_templates import END_OF_FRAME, Templates
from harness.client.protocol.http1 import ResponseReader
from harness.client.protocol.sse import ReplyParser

BATCH_BYTES = 32 * 1024
"""Bytes of a reply that are put aside before they are parsed."""

MIN_BATCH_BYTES = 2400
"""Bytes (some ten events) below which a reply is parsed event by event: a batch costs as much as five of them."""

_OTHER_FRAMES = 4
"""Frames in a row that fit no template, after which the rest is parsed the general way, and learnt from."""

_LAST_CHUNK = b"0\r\n\r\n"

_FRAME = re.compile(rb"([0-9a-fA-F]{1,8})\r\ndata: (\{[^\n]*+|\[DONE\])\n\n\r\n")
"""A chunk that holds one event on one line: its size, and the event's data."""


class BatchReader:
    """Feeds one reply's parser. error_body: what came of an error's body; None while the reply is no error."""

    __slots__ = ("_templates", "error_body", "http", "parser")

    def __init__(self, parser: ReplyParser, templates: Templates) -> None:
        self.parser = parser
        self.http = ResponseReader()
        self.error_body: bytearray | None = None
        self._templates = templates

    def take(self, pieces: list[bytes], stamps: Sequence[float], *, all_of_it: bool) -> bytes:
        """Read what has come since the last call. Returns an unfinished frame, to come again, unless `all_of_it`.

        Raises `RequestFailed`, `BadResponse`.
        """
        raw = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        ends = [len(raw)] if len(pieces) == 1 else list(accumulate(map(len, pieces)))
        position, whole = 0, len(raw)
        if not self.http.status:
            position = raw.find(b"\r\n\r\n") + 4
            position = position if position >= 4 else whole
            self._feed(raw, ends, stamps, 0, position)
        if self.http.chunked and self.error_body is None:
            if whole - position >= MIN_BATCH_BYTES:
                border = raw.rfind(END_OF_FRAME, position) + len(END_OF_FRAME)
                if not all_of_it and border > position and whole - border < BATCH_BYTES:
                    rest = raw[border:]
                    if rest and not rest.startswith(b"0\r\n") and not rest.endswith(_LAST_CHUNK):
                        whole = border
            position = self._take_frames(raw, ends, stamps, position, whole)
        self._feed(raw, ends, stamps, position, whole)
        return raw[whole:]

    def _take_frames(self, raw: bytes, ends: list[int], stamps: Sequence[float], position: int, whole: int) -> int:
        """Read chunks from `position` on while each holds one event; returns where the first other one begins."""
        parser = self.parser
        if not (self.http.at_chunk_border and parser.at_event_border):
            return position
        others = 0  # frames in a row that fit no template
        events: list[bytes] = []  # read, and not yet fed
        times: list[float] = []
        done, match = False, _FRAME.match
        while not done:
            if others < _OTHER_FRAMES and whole - position >= MIN_BATCH_BYTES:
                template = self._templates.find(raw, position)
                batch = template.batch(raw, position) if template is not None else None
                if template is not None and batch is not None:
                    if events:
                        parser.feed_events(events, times)
                        events, times = [], []
                    stamped = _times_of_events(raw, ends, stamps, position, batch.end, batch.tail, len(batch.texts))
                    parser.feed_tokens(
                        batch.texts,
                        stamped,
                        reasoning=template.reasoning,
                        n_bytes=batch.end - position,
                        ids=batch.ids,
                        reply_id=batch.reply_id,
                        model=template.model,
                    )
                    position, others = batch.end, 0
                    continue
                others += 1
                if others == _OTHER_FRAMES:
                    self._templates.learn(raw[position:whole])
            frame = match(raw, position, whole)
            if frame is None:
                break
            size, data = frame.groups()
            if int(size, 16) != len(data) + 8:
                break
            position = frame.end()
            events.append(data)
            # The read that held the end of the blank line.
            times.append(stamps[bisect_right(ends, position - 3)] if len(ends) > 1 else stamps[0])
            done = data == b"[DONE]"
        if events:
            parser.feed_events(events, times)
        return position

    def _feed(self, raw: bytes, ends: list[int], stamps: Sequence[float], position: int, end: int) -> None:
        """Read `raw[position:end]` the general way, each read with its own stamp. ends: where the reads end."""
        http = self.http
        read = bisect_right(ends, position)
        while position < end:
            headless = not http.status
            until = min(ends[read], end)
            body = http.feed(raw[position:until])
            if headless and http.status:
                self._begin_body()
            if self.error_body is not None:
                self.error_body += body
            elif body:
                self.parser.feed(body, stamps[read])
            position = until
            read += 1

    def _begin_body(self) -> None:
        if self.http.status != 200:
            self.error_body = bytearray()
            return
        encoding = self.http.headers.get("content-encoding", "identity").lower()
        if encoding != "identity":
            raise self.parser.failed("malformed", f"the reply is compressed ({encoding}) though identity was asked")
        self.parser.request_id = self.http.headers.get("x-request-id")


def _times_of_events(
    raw: bytes, ends: list[int], stamps: Sequence[float], start: int, end: int, tail: bytes, n_events: int
) -> Sequence[float]:
    """When each of the events in `raw[start:end]` came: the stamp of the read that held the end of its blank line.

    tail: what each event ends in, its blank line included.
    """
    first, last = bisect_right(ends, start), bisect_right(ends, end - 1)
    if first == last:
        return [stamps[first]] * n_events
    if last - first == n_events - 1:
        tails = [raw[end_of_read - 4 : end_of_read] for end_of_read in ends[first:last]]
        if tails.count(END_OF_FRAME) == len(tails):
            return stamps[first : last + 1]  # each read brought whole events, so each brought one
    for mark in (tail, b"\n\n"):  # a long mark is found faster; but the tails of a batch may differ
        times: list[float] = []
        position = start
        for read in range(first, last + 1):
            until = min(ends[read], end)
            times += [stamps[read]] * raw.count(mark, max(position - len(mark) + 1, start), until)
            position = until
        if len(times) == n_events:
            return times
    return [stamps[last]] * n_events
