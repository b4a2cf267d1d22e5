"""The bytes of one response, in reads with stamps → its parser: many token events in one step where that is possible.

A batch goes by a template where one fits (see `event_templates`), else the general way, event by event. Splits of the
bytes never change the outcome.
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

MIN_BATCH_BYTES = 1200
"""Bytes (some five events) below which a reply is parsed event by event."""

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
        at, whole = 0, len(raw)
        if not self.http.status:
            at = raw.find(b"\r\n\r\n") + 4
            at = at if at >= 4 else whole
            self._feed(raw, ends, stamps, 0, at)
        if self.http.chunked and self.error_body is None:
            if whole - at >= MIN_BATCH_BYTES:
                border = raw.rfind(END_OF_FRAME, at) + len(END_OF_FRAME)
                if not all_of_it and border > at and whole - border < BATCH_BYTES:
                    rest = raw[border:]
                    if rest and not rest.startswith(b"0\r\n") and not rest.endswith(_LAST_CHUNK):
                        whole = border
            at = self._take_frames(raw, ends, stamps, at, whole)
        self._feed(raw, ends, stamps, at, whole)
        return raw[whole:]

    def _take_frames(self, raw: bytes, ends: list[int], stamps: Sequence[float], at: int, whole: int) -> int:
        """Read chunks from `at` on for as long as each holds one event; returns where the first other one begins."""
        parser = self.parser
        if not (self.http.at_chunk_border and parser.at_event_border):
            return at
        others = 0  # frames in a row that fit no template
        events: list[bytes] = []  # read, and not yet fed
        times: list[float] = []
        done, match = False, _FRAME.match
        while not done:
            if others < _OTHER_FRAMES and whole - at >= MIN_BATCH_BYTES:
                template = self._templates.find(raw, at)
                batch = template.batch(raw, at) if template is not None else None
                if template is not None and batch is not None:
                    if events:
                        parser.feed_events(events, times)
                        events, times = [], []
                    stamped = _times_of_events(raw, ends, stamps, at, batch.end, batch.tail, len(batch.texts))
                    parser.feed_tokens(
                        batch.texts,
                        stamped,
                        reasoning=template.reasoning,
                        n_bytes=batch.end - at,
                        ids=batch.ids,
                        reply_id=batch.reply_id,
                        model=template.model,
                    )
                    at, others = batch.end, 0
                    continue
                others += 1
                if others == _OTHER_FRAMES:
                    self._templates.learn(raw[at:whole])
            frame = match(raw, at, whole)
            if frame is None:
                break
            size, data = frame.groups()
            if int(size, 16) != len(data) + 8:
                break
            at = frame.end()
            events.append(data)
            # The read that held the end of the blank line.
            times.append(stamps[bisect_right(ends, at - 3)] if len(ends) > 1 else stamps[0])
            done = data == b"[DONE]"
        if events:
            parser.feed_events(events, times)
        return at

    def _feed(self, raw: bytes, ends: list[int], stamps: Sequence[float], at: int, end: int) -> None:
        """Read `raw[at:end]` the general way, each read with its own stamp. ends: where the reads end."""
        http = self.http
        read = bisect_right(ends, at)
        while at < end:
            headless = not http.status
            until = min(ends[read], end)
            body = http.feed(raw[at:until])
            if headless and http.status:
                self._begin_body()
            if self.error_body is not None:
                self.error_body += body
            elif body:
                self.parser.feed(body, stamps[read])
            at = until
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
        at = start
        for read in range(first, last + 1):
            until = min(ends[read], end)
            times += [stamps[read]] * raw.count(mark, max(at - len(mark) + 1, start), until)
            at = until
        if len(times) == n_events:
            return times
    return [stamps[last]] * n_events
