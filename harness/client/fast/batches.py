"""Passing the bytes of a response to the reply parser, if possible many token events in one step (a batch).

Long: the reader of batches and the templates that it uses share the layout of an event, byte by byte.

There are three ways to the parser, and the fastest one that fits is taken; all three give the same reply:

    way          what fits                                            a token costs
    template     a run of chunks, each one event of a known form      a share of one regular expression and one decoding
    event        a chunk that is one event on one line                a decoding of the fields that matter
    general      anything else: heads, split chunks, CRLF, errors     a walk through chunks, lines and events

Invariant: the first two begin and end only where a chunk and an event begin. How the bytes are split into reads never
changes the outcome.

A template is what the token events of a server have in common. Consecutive ones differ only in the token's text, in
`created` and, if asked for, in `token_ids`:

    1a4\r\ndata: {"id":"c-7","created":17,…"delta":{"content":"  4  "}}]}\n\n\r\n1a5\r\ndata: {"id":"c-7",…
    size          head                                         text  tail               size          head

The template is the head and the tail, taken from an event of which every field is understood. In a run of whole HTTP
chunks, everything between two texts is replaced by `","`, which makes one JSON array of texts, decoded in one call.

Guarantee: a run is taken as a batch only if each event in it is the template around a JSON string, and all events state
the same id. Anything else (a finish reason, usage, an error, a comment, CRLF, another field, another model) goes the
general way. Why this is safe: the replaced piece contains line ends, which no JSON string can contain, and an event
that does not fit leaves its own line ends in the result, where they are found. The first event's `"id":"c-7"` must
occur once per event; no text can contain it, since its quotes would be escaped. The sizes of the chunks in a batch are
not compared with their contents.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain, islice, repeat
from typing import Any, NamedTuple

import msgspec

from harness.client.protocol.http1 import ResponseReader, stated_size
from harness.client.protocol.sse import EVENT_FRAME_BYTES, ReplyParser
from harness.core import codec

BATCH_BYTES = 32 * 1024
"""A reply's stored bytes are parsed when this many have come."""

MIN_BATCH_BYTES = 2400
"""Bytes (some ten events) below which a reply is parsed event by event: a batch costs as much as five of them."""

_OTHER_FRAMES = 4
"""Number of frames in a row that fit no template, after which the rest is parsed the general way, and learnt from."""

_LAST_CHUNK = b"0\r\n\r\n"
_LINE_ENDS = 4
"""Number of line ends of a chunk that holds one event on one line."""


class BatchReader:
    """Feeds one reply's parser. error_body: what has come of an error reply's body; None if the status is no error."""

    __slots__ = ("_templates", "_whole_events", "error_body", "http", "parser")

    def __init__(self, parser: ReplyParser, templates: Templates) -> None:
        self.parser = parser
        self.http = ResponseReader()
        self.error_body: bytearray | None = None
        self._templates = templates
        self._whole_events = False

    def take(
        self, pieces: list[bytes], stamps: Sequence[float], *, all_of_it: bool, whole_events: bool = False
    ) -> bytes:
        """Read what has come since the last call; return the bytes of an unfinished frame at the end.

        The caller passes these bytes again, with those that follow. pieces, stamps: the reads and when each came, in
        seconds. all_of_it: read an unfinished frame, too. whole_events: each piece but the last one is known to end in
        `END_OF_FRAME`. Raises `RequestFailed`, `BadResponse`.
        """
        self._whole_events = whole_events
        raw = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        ends = [len(raw)] if len(pieces) == 1 else list(accumulate(map(len, pieces)))
        position, stop = 0, len(raw)
        if not self.http.status:
            head_end = raw.find(b"\r\n\r\n")
            # A head that is not whole yet goes to the reader as it is.
            position = head_end + 4 if head_end >= 0 else stop
            self._feed(raw, ends, stamps, 0, position)
        if self.http.chunked and self.error_body is None:
            if stop - position >= MIN_BATCH_BYTES:
                border = raw.rfind(END_OF_FRAME, position) + len(END_OF_FRAME)
                if not all_of_it and border > position and stop - border < BATCH_BYTES:
                    rest = raw[border:]
                    # The last chunk must not be put aside: nothing may come behind it that would have it parsed.
                    if rest and not rest.startswith(b"0\r\n") and not rest.endswith(_LAST_CHUNK):
                        stop = border
            position = self._take_frames(raw, ends, stamps, position, stop)
        self._feed(raw, ends, stamps, position, stop)
        return raw[stop:]

    def _take_frames(self, raw: bytes, ends: list[int], stamps: Sequence[float], position: int, stop: int) -> int:
        """Read chunks from `position` on, as long as each holds exactly one event; return the position behind them.

        raw: the bytes so far. ends: where each read ended in them. stamps: when each read came. stop: how many of
        these bytes may be read now.
        """
        parser = self.parser
        if not (self.http.at_chunk_border and parser.at_event_border):
            return position
        others = 0  # frames in a row that fit no template
        while others < _OTHER_FRAMES and stop - position >= MIN_BATCH_BYTES:
            template = self._templates.find(raw, position)
            batch = template.batch(raw, position) if template is not None else None
            if template is not None and batch is not None:
                parser.feed_tokens(
                    batch.texts,
                    self._times(raw, ends, stamps, position, batch),
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
                self._templates.learn(raw[position:stop])
            after = self._take_events(raw, ends, stamps, position, stop, 1)
            if after == position or parser.done:
                return after
            position = after
        return self._take_events(raw, ends, stamps, position, stop)

    def _times(
        self, raw: bytes, ends: list[int], stamps: Sequence[float], start: int, batch: TokenBatch
    ) -> Sequence[float]:
        """When each event of `batch`, which begins at `start`, came.

        raw: the bytes so far. ends: where each read ended in them. stamps: when each read came.
        """
        if self._whole_events:
            first, last = bisect_right(ends, start), bisect_right(ends, batch.end - 1)
            if last - first == len(batch.texts) - 1:
                return stamps[first : last + 1]  # as many reads as events, and no read ends inside an event
        return _times_of_events(raw, ends, stamps, start, batch.end, batch.tail, len(batch.texts))

    def _take_events(
        self, raw: bytes, ends: list[int], stamps: Sequence[float], position: int, stop: int, limit: int = -1
    ) -> int:
        """Read at most `limit` chunks (-1: all) that hold one event on one line each; returns the position after.

        The other parameters are those of `_take_frames`.
        """
        start, several_reads = position, len(ends) > 1
        events: list[bytes] = []
        times: list[float] = []
        for frame in raw[position:stop].split(END_OF_FRAME, limit)[:-1]:
            size, _, data = frame.partition(b"\r\ndata: ")
            done = data[:1] != b"{"
            n_bytes = len(data) + EVENT_FRAME_BYTES
            # Servers write the size in the shortest form; a comparison is cheaper than reading it.
            if (done and data != b"[DONE]") or (size != b"%x" % n_bytes and stated_size(size) != n_bytes):
                break
            position += len(frame) + len(END_OF_FRAME)
            events.append(data)
            # The read that held the end of the blank line.
            times.append(stamps[bisect_right(ends, position - 3)] if several_reads else stamps[0])
            if done:
                break
        # One count is cheaper than a look into each event: data of several lines is left to the general way.
        if raw.count(b"\n", start, position) != _LINE_ENDS * len(events):
            return start
        self.parser.feed_events(events, times)
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
        """Read from the response's head how the body is sent. Raises a failure if the body is compressed."""
        if self.http.status != 200:
            self.error_body = bytearray()
            return
        encoding = self.http.headers.get("content-encoding", "identity").lower()
        if encoding != "identity":
            raise self.parser.failure("malformed", f"the reply is compressed ({encoding}), which was not asked for")
        self.parser.request_id = self.http.headers.get("x-request-id")


def _times_of_events(
    raw: bytes, ends: list[int], stamps: Sequence[float], start: int, end: int, tail: bytes, n_events: int
) -> Sequence[float]:
    """When each of the events in `raw[start:end]` came: the stamp of the read that held the end of its blank line.

    tail: what each event ends in, its blank line included. n_events: their number.
    """
    first, last = bisect_right(ends, start), bisect_right(ends, end - 1)
    if first == last:
        return [stamps[first]] * n_events
    borders = ends[first:last]
    for mark in (tail, b"\n\n"):  # a long mark is found faster; but the tails of a batch may differ
        # A mark counts for the read that holds its end, so each read is searched from a mark's length before it on.
        overlap = len(mark) - 1
        starts = [start, *[max(border - overlap, start) for border in borders]]
        counts = list(map(raw.count, repeat(mark), starts, [*borders, end]))
        if sum(counts) == n_events:
            return list(chain.from_iterable(map(repeat, stamps[first : last + 1], counts)))
    return [stamps[last]] * n_events


END_OF_FRAME = b"\n\n\r\n"
"""An event's blank line, then the end of its HTTP chunk."""

MAX_TEMPLATES = 16
"""Largest number of templates kept for one server: a few models, text and reasoning."""

MAX_EVENT_BYTES = 16 * 1024
"""Longest event that a template is learnt from."""

_CLOSING_FRAMES = 6
"""Number of frames at the end of a reply that may be no tokens: a finish event, usage, `[DONE]`, the last chunk."""

_MAX_MISSES = 64
"""Number of batches in a row without a template, after which none is looked for any more."""

_MAX_FIELDS = 8
"""Number of fields of an event that are tried as the token's text."""

_SIZE = rb"[0-9a-fA-F]{1,8}\r\n"
# An unrolled loop without alternatives: linear in the text, so no reply can make it backtrack.
_STRING = rb'[^"\\\n]*(?:\\.[^"\\\n]*)*'
_VARIES = re.compile(rb'("id"\s*:\s*)"[^"\\]*"|("created"\s*:\s*)\d+|("token_ids"\s*:\s*)\[[\d, ]*\]')
_ID = re.compile(rb'"id"\s*:\s*"([^"\\]*)"')
_IDS = re.compile(rb'"token_ids"\s*:\s*\[([\d, ]*)\]')
"""The field of an event's token ids. No text of a reply can contain the field, since its quotes would be escaped."""
_TEXT_FIELD = re.compile(rb'"(content|reasoning_content|reasoning|text)"\s*:\s*"(' + _STRING + rb')"')
_decode_texts = msgspec.json.Decoder(list[str]).decode


class TokenBatch(NamedTuple):
    """A run of token events.

    end: the position behind the run. texts: the token text of each event. tail: the bytes in which the last event ends.
    ids: the token ids of each event; None if not all events state them. reply_id: the `id` that all events state; None
    if they state none.
    """

    end: int
    texts: list[str]
    tail: bytes
    ids: list[list[int]] | None
    reply_id: str | None


class Template:
    """The constant head and tail of a server's token events.

    reasoning: whether the token belongs to the reasoning. model: the name that the events state; None if they state
    none.
    """

    def __init__(self, head: bytes, tail: bytes, reasoning: bool, model: str | None = None) -> None:
        """head, tail: of the event's JSON around the token's text, without the quotes."""
        before = rb"data: ?" + _varying_pattern(head) + rb'"'
        after = rb'"' + _varying_pattern(tail) + rb"\n\n"
        self.reasoning = reasoning
        self.model = model
        self._states_id = _ID.search(head) is not None or _ID.search(tail) is not None
        self._states_ids = _IDS.search(tail) is not None or _IDS.search(head) is not None
        self.pattern = before + after
        self._first = re.compile(_SIZE + before)
        self._frame = re.compile(_SIZE + before + _STRING + rb"(?P<tail>" + after + rb"\r\n)")
        # Atomic and possessive: a run that ends in something else must not be tried again from each earlier event.
        self._run = re.compile(rb"(?>" + _SIZE + before + _STRING + after + rb"\r\n)++")
        self._between = re.compile(after + rb"(?:\r\n" + _SIZE + rb")?" + before)

    def fits(self, raw: bytes, position: int) -> bool:
        """Whether an event of this template begins at `position`, the border of a chunk."""
        return self._first.match(raw, position) is not None

    def batch(self, raw: bytes, position: int) -> TokenBatch | None:
        """The tokens of the events of this template that follow one another from `position` on; None if there are none.

        position: where a chunk begins. Frames of another form may follow the run; up to `_CLOSING_FRAMES` cost little.
        """
        end = self._extent(raw, position)
        batch = self._texts(raw, position, end)
        # Something unlike a token stands among the frames: only the run before it is a batch.
        if batch is None and (run := self._run.match(raw, position)) is not None:
            batch = self._texts(raw, position, run.end())
        return batch

    def _extent(self, raw: bytes, position: int) -> int:
        """The end of the last event of this template in `raw`; `position` if none of the last frames is one.

        Only the last `_CLOSING_FRAMES` frames are tried.
        """
        end = raw.rfind(END_OF_FRAME, position)
        for _ in range(_CLOSING_FRAMES):
            if end < 0:
                break
            before = raw.rfind(END_OF_FRAME, position, end)
            start = before + len(END_OF_FRAME) if before >= 0 else position
            if self._frame.fullmatch(raw, start, end + len(END_OF_FRAME)):
                return end + len(END_OF_FRAME)
            end = before
        return position

    def _texts(self, raw: bytes, position: int, end: int) -> TokenBatch | None:
        """The events in `raw[position:end]`; None if one of them is not of this template."""
        first = self._first.match(raw, position, end)
        before = raw.rfind(END_OF_FRAME, position, end - len(END_OF_FRAME))
        last = self._frame.fullmatch(raw, before + len(END_OF_FRAME) if before >= 0 else position, end)
        if first is None or last is None:
            return None
        joined, n = self._between.subn(b'","', raw[first.end() : last.start("tail")])
        if b"\n" in joined:
            return None
        try:
            texts = _decode_texts(b'["' + joined + b'"]')
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        if len(texts) != n + 1:
            return None
        reply_id = None
        if self._states_id:
            # A count of short bytes is seven times as fast as a pattern that compares each event with the first.
            stated = _ID.search(first[0]) or _ID.search(last["tail"])
            if stated is None or raw.count(stated[0], position, end) != len(texts):
                return None
            reply_id = stated[1].decode("utf-8", "replace")
        ids = _ids(raw, position, end) if self._states_ids else None
        return TokenBatch(end, texts, last["tail"][:-2], ids if ids and len(ids) == len(texts) else None, reply_id)


def _ids(raw: bytes, position: int, end: int) -> list[list[int]] | None:
    """The token ids that each event of `raw[position:end]` states; None if any id is no number."""
    try:
        return [[int(n) for n in ids.split(b",")] if ids.strip() else [] for ids in _IDS.findall(raw, position, end)]
    except ValueError:
        return None


class Templates:
    """The templates of one server, the latest first."""

    def __init__(self) -> None:
        self._templates: list[Template] = []
        self._misses = 0

    def find(self, raw: bytes, position: int) -> Template | None:
        """The known template of the event that begins at `position`."""
        for template in self._templates:
            if template.fits(raw, position):
                return template
        return None

    def learn(self, raw: bytes) -> None:
        """Add the template of a token event near the end of `raw`, if one is found."""
        if self._misses >= _MAX_MISSES:
            return
        self._misses += 1
        end = raw.rfind(END_OF_FRAME)
        for _ in range(_CLOSING_FRAMES):
            start = raw.rfind(b"data:", 0, max(end, 0))
            if start < 0:
                return
            template = learn_template(raw[start + 5 : end])
            if template is not None:
                self._misses = 0
                if all(earlier.pattern != template.pattern for earlier in self._templates):
                    self._templates.insert(0, template)
                    del self._templates[MAX_TEMPLATES:]
                return
            end = raw.rfind(END_OF_FRAME, 0, start)


def learn_template(event: bytes) -> Template | None:
    """Learn from one event of a stream the bytes around its token's text, which recur in every such event.

    None if the event carries anything besides one token's text.
    """
    if len(event) > MAX_EVENT_BYTES:
        return None
    try:
        value: Any = codec.decode(event)
    except codec.DecodeError:
        return None
    for field in islice(_TEXT_FIELD.finditer(event), _MAX_FIELDS):
        head, tail = event[: field.start(2) - 1], event[field.end(2) + 1 :]
        # No server sends a NUL in a token, so the probe is found again only where it was put.
        probe = "\x00probe"
        try:
            probed: Any = codec.decode(head + codec.encode(probe) + tail)
        except codec.DecodeError:
            continue
        token = _only_token(probed)
        if token == (probe, field[1].decode()) and _only_token(value) is not None:
            model = value["model"] if type(value.get("model")) is str else None
            template = Template(head, tail, field[1].startswith(b"reasoning"), model or None)
            # With two ids in an event, counting them would not prove that all events state the same one.
            return template if len(_ID.findall(event)) <= 1 else None
    return None


def _only_token(value: Any) -> tuple[str, str] | None:
    """Return (text, field) if an event holds the text of one token and nothing else that matters; else None."""
    if type(value) is not dict or value.get("usage") or value.get("error") or type(value.get("choices")) is not list:
        return None
    if len(value["choices"]) != 1 or type(value["choices"][0]) is not dict:
        return None
    choice = value["choices"][0]
    index = choice.get("index")
    if choice.get("finish_reason") or choice.get("error") or choice.get("message") is not None:
        return None
    if index is not None and (type(index) is not int or index):
        return None
    delta = choice.get("delta")
    if delta is None and type(choice.get("text")) is str:
        return choice["text"], "text"
    if type(delta) is not dict or choice.get("text") is not None:
        return None
    filled = {field: text for field, text in delta.items() if text not in (None, [], {}) and field != "role"}
    # An empty text beside the token says "a text came"; the batch reader could not tell.
    if len(filled) != 1:
        return None
    field, text = next(iter(filled.items()))
    return (text, field) if type(text) is str and text and field in _FIELDS else None


_FIELDS = frozenset({"content", "reasoning_content", "reasoning"})


_FREE = (rb'"[^"\\\n]*"', rb"\d+", rb"\[[\d, ]*\]")
"""Forms of the values that `_VARIES` finds: a text without escapes, a whole number, a list of numbers."""


def _varying_pattern(piece: bytes) -> bytes:
    """A regular expression for events like `piece`; the values of `id`, `created` and `token_ids` may differ."""
    pattern = []
    position = 0
    for varying in _VARIES.finditer(piece):
        pattern.append(re.escape(piece[position : varying.start()]))
        name, free = next((name, free) for name, free in zip(varying.groups(), _FREE, strict=True) if name)
        pattern.append(re.escape(name) + free)
        position = varying.end()
    pattern.append(re.escape(piece[position:]))
    return b"".join(pattern)
