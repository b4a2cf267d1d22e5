"""HTTP/1.1 as far as a completion request needs it: the request's head, and bytes of a response → its body.

Pure, strict and bounded. Guarantees: splits of the bytes never change the outcome; a body that ended early is never
taken for whole; nothing outside the framing reaches the body. Not covered: compression, upgrades, HTTP/2.

A reply that a connection carries though it answers no request of its own: what is left over from another request.

    request 1 ──▶            ◀── reply 1            a sound server
    request 1 ──▶            ◀── reply 1 ◀── reply 1 once more, or one that nobody asked for
    request 2 ──▶  its answer is taken from what is left over, and so on with every request after it

What is told, and where:
- bytes that come while no request is under way, or before the request was sent (`Connection`, `aio._Protocol`);
- bytes behind the end of a reply, in the same read;
- the id and the text of the reply before on this connection, or of one of the latest replies to another prompt (to the
  same prompt a cache may have answered). An id alone may be the time of day, which two short replies share: once
  two texts had one id, or one text came three times under one, ids prove nothing;
- another number of prompt tokens than this prompt has had, where a server's counts have proved steady: the same number
  for the same prompt. A number that comes twice against the known one is believed, and the server's counts no more.
Each is a doubt. After the first doubt about a server, no connection to it carries a second request, so that nothing
can be left over any more; and the next reply is noted with how many replies came over used connections before, since
those may be wrong.
Not covered: before the first doubt, a leftover under an id of its own, with the count that the prompt had before or
that was never known.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.reply_notes import AFTER_LEFTOVER, AFTER_THE_END

MAX_HEAD_BYTES = 32 * 1024
"""Longest head of a response."""

MAX_HEADERS = 128
"""Most header lines of a response: as names and values they take twenty times the memory of the shortest lines."""

MAX_INTERIM_HEADS = 100
"""Most heads of status 1xx before the true one."""

MAX_SIZE_LINE_BYTES = 4096
"""Longest line of a chunk's size with its extensions, and longest trailers."""

_STATUS = re.compile(r"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [^\r\n]*)?\Z")
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,12})[ \t]*(?:;[^\r\n]*)?\Z")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*\Z")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_IMPOSSIBLE_IN_HEADS = re.compile(r"[\x00\r\n]")

_JOINED_HEADERS = frozenset({"connection", "content-encoding", "content-length", "transfer-encoding"})
"""Headers whose lines count all together; of any other header the last line counts."""

_LAST_CHUNK = b"0\r\n\r\n"
"""The end of nearly every chunked body."""

_NO_HEADERS: Mapping[str, str] = {}


class BadResponse(ValueError):
    """The peer does not speak HTTP/1.1, or breaks its framing."""


def request_head(url: str, headers: Mapping[str, str]) -> bytes:
    """The head of a POST to `url`, up to the value of its Content-Length. `ValueError` for what cannot be sent."""
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    for part, text in (("host", host), ("path", target)):
        if not text.isascii() or re.search(r"[\x00-\x20\x7f]", text):
            raise ValueError(f"the {part} holds characters that no URL can carry")
    lines = [f"POST {target} HTTP/1.1", f"Host: {host}"]
    for name, value in headers.items():
        if not _HEADER_VALUE.match(value) or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_|~-]+", name):
            raise ValueError(f"the value of the header {name!r} holds characters that no header can carry")
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "Content-Length: "]).encode("ascii")


class ResponseReader:
    """One response, fed piece by piece. status: 0 until the head is whole. headers: names in lower case."""

    __slots__ = (
        "_buffer",
        "_framing",
        "_interim",
        "_keep_alive",
        "_left",
        "ended",
        "headers",
        "started",
        "status",
        "surplus",
    )

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = _NO_HEADERS
        self.ended = False
        self.started = False
        """A byte came."""
        self._framing = ""  # "chunked", "length" or "close", once the head is whole
        self._buffer = b""  # an unfinished head, chunk size or trailer
        self._interim = 0
        self._left = 0  # bytes to come of the body (length), or of the chunk and its CRLF (chunked)
        self._keep_alive = True
        self.surplus = False
        """Bytes came behind the end of the response."""

    @property
    def chunked(self) -> bool:
        """The body comes in chunks."""
        return self._framing == "chunked"

    @property
    def at_chunk_border(self) -> bool:
        """A chunked body of which the next byte begins a chunk's size."""
        return self._framing == "chunked" and not self._left and not self._buffer and not self.ended

    @property
    def reusable(self) -> bool:
        """The connection may carry another request."""
        return self.ended and self._keep_alive and not self.surplus and self._framing != "close"

    def feed(self, data: bytes) -> bytes:
        """The bytes of the body in the next bytes of the response. Raises `BadResponse`."""
        self.started = True
        if not self._framing:
            data = self._read_head(data)
        if not data:
            return b""
        if self.ended:
            self.surplus = True
            return b""
        if self._framing == "chunked":
            if data == _LAST_CHUNK and not self._left and not self._buffer:
                self.ended = True
                return b""
            return self._read_chunks(data)
        if self._framing == "close":
            return data
        body = data[: self._left]
        self._left -= len(body)
        self.ended = not self._left
        self.surplus |= len(data) > len(body)
        return body

    def eof(self) -> str:
        """The connection ended: why the response is not whole; empty if it is."""
        if self._framing == "close":
            self.ended = True
        if self.ended:
            return ""
        if not self._framing:
            return "the connection closed before the reply"
        return "the connection closed inside the body"

    def _read_head(self, data: bytes) -> bytes:
        data = self._buffer + data
        position = 0
        while (end := data.find(b"\r\n\r\n", position)) >= 0:
            head = _parse_head(data[position:end])
            position = end + 4
            if head.status >= 200 or head.status == 101:
                self.status, self.headers, self._keep_alive, self._framing, self._left = head
                self.ended = self._framing == "length" and not self._left
                self._buffer = b""
                return data[position:]
            self._interim += 1  # 100 Continue, 103 Early Hints: the true head follows
            if self._interim > MAX_INTERIM_HEADS:
                raise BadResponse("interim replies without end")
        self._buffer = data[position:]
        if len(self._buffer) > MAX_HEAD_BYTES or not b"HTTP/1.".startswith(self._buffer[:7]):
            raise BadResponse("the reply does not begin as HTTP/1.1 does")
        return b""

    def _read_chunks(self, data: bytes) -> bytes:
        left = self._left
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        body = []
        position, end = 0, len(data)
        while position < end:
            if left > 2:
                piece = data[position : position + left - 2]
                body.append(piece)
                position += len(piece)
                left -= len(piece)
                if left > 2:
                    break
            if left:
                piece = data[position : position + left]
                if not b"\r\n"[2 - left :].startswith(piece):
                    raise BadResponse("a chunk is not as long as it says")
                position += len(piece)
                left -= len(piece)
                continue
            line = data.find(b"\r\n", position)
            size = chunk_size(data[position:line]) if line >= 0 else 1
            stop = line + 2 + size
            if size and line >= 0 and data[stop : stop + 2] == b"\r\n":  # the whole chunk is here
                body.append(data[line + 2 : stop])
                position = stop + 2
                continue
            last = data.find(b"\r\n\r\n", line) if line >= 0 and not size else 0
            if line < 0 or last < 0:  # the size or the trailers are not whole yet
                if end - position > MAX_SIZE_LINE_BYTES:
                    raise BadResponse("a chunk without a size")
                self._buffer = data[position:]
                break
            if not size:
                self.ended = True
                self.surplus = last + 4 < end
                break
            position = line + 2
            left = size + 2
        self._left = left
        return body[0] if len(body) == 1 else b"".join(body)


class _Head(NamedTuple):
    """framing: "chunked", "length" (then `left` bytes of body) or "close"."""

    status: int
    headers: Mapping[str, str]
    keep_alive: bool
    framing: str
    left: int


def begins_chunked_body(data: bytes) -> bool:
    """`data` begins with the whole head of a response of status 200 that comes in chunks."""
    end = data.find(b"\r\n\r\n")
    if end < 0 or not data.startswith(b"HTTP/1."):
        return False
    try:
        head = _parse_head(data[:end])
    except BadResponse:
        return False
    return head.status == 200 and head.framing == "chunked"


@lru_cache(32)
def _parse_head(data: bytes) -> _Head:
    """A head without its blank line. A server's heads are the same for a second at least."""
    lines = data.decode("latin-1").split("\r\n")
    status = _STATUS.match(lines[0])
    if status is None:
        raise BadResponse("the reply does not begin as HTTP/1.1 does")
    if len(lines) > MAX_HEADERS + 1:
        raise BadResponse(f"{len(lines) - 1} headers")
    headers: dict[str, str] = {}
    for line in lines:
        if _IMPOSSIBLE_IN_HEADS.search(line):
            raise BadResponse("a head with a bare line end or a NUL")
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadResponse("a header without a colon")
        if not _HEADER_NAME.match(name):
            raise BadResponse(f"an impossible name of a header {name[:40]!r}")
        name, value = name.lower(), value.strip(" \t")
        if name in _JOINED_HEADERS and name in headers:
            value = f"{headers[name]}, {value}"
        headers[name] = value
    connection = headers.get("connection", "").lower()
    keep_alive = "close" not in connection and (status[1] == "1" or "keep-alive" in connection)
    # Two framings in one head: RFC 9112 6.3 lets the chunks decide, and trusts the connection no further.
    keep_alive &= not ("transfer-encoding" in headers and "content-length" in headers)
    return _Head(int(status[2]), headers, keep_alive, *_body_framing(int(status[2]), headers))


def _body_framing(status: int, headers: Mapping[str, str]) -> tuple[str, int]:
    """RFC 9112 6.3, in its order: a status without a body, chunks, a length, the connection's end."""
    if status < 200 or status in (204, 304):
        return "length", 0
    coding = headers.get("transfer-encoding")
    if coding is not None:
        if coding.lower() != "chunked":
            raise BadResponse(f"an unknown transfer encoding {coding[:40]!r}")
        return "chunked", 0
    lengths = headers.get("content-length")
    if lengths is None:
        return "close", 0
    length, *more = {length.strip(" \t") for length in lengths.split(",")}  # the same one twice is one (RFC 9110 8.6)
    if more or not (length.isascii() and length.isdigit() and len(length) < 16):
        raise BadResponse(f"an impossible Content-Length {lengths[:40]!r}")
    return "length", int(length)


@lru_cache(512)
def chunk_size(line: bytes) -> int:
    """The size of a chunk of which `line` is the head, without its line end. Raises `BadResponse`."""
    match = _CHUNK_SIZE.match(line)
    if match is None:
        raise BadResponse("a chunk without a size")
    return int(match[1], 16)


# ---- what is left over from another request


STEADY_COUNTS = 3
"""Replies that must have repeated their prompt's count before one that differs is doubted."""

MAX_PROMPTS = 50_000
"""Prompts whose count is remembered; the one that was asked longest ago goes first."""

MAX_REPLIES = 4096
"""Replies of a server that are known again, the latest ones."""

REQUEST_TIMEOUT_HEAD = b"HTTP/1.1 408"
"""Head that proxies send on a connection that was idle for too long, before they close it; it answers no request."""


class Mark(NamedTuple):
    """By which a reply is known again. text: a hash of its text and reasoning; prompt: see `prompt_of`."""

    reply_id: str
    text: int
    prompt: int


class Leftovers:
    """What is known of the replies of one server. doubted: it has sent a reply that nobody asked for."""

    def __init__(self) -> None:
        self.doubted = False
        self._n_exposed = 0  # replies over connections that had carried another request
        self._untold = False  # the next reply is to be noted with that number
        self._latest: str | None = None
        self._ids_vary = False
        self._ids_shared = False  # two replies of different texts had the same one
        self._marks: OrderedDict[str, Mark] = OrderedDict()  # of the latest replies, by id
        self._counts: OrderedDict[int, int] = OrderedDict()  # prompt tokens by prompt
        self._doubted_counts: dict[int, int] = {}  # the count that was refused last, by prompt
        self._n_repeated = 0
        self._steady = True

    def doubt(self) -> None:
        """The server sent something that answers no request."""
        if not self.doubted:
            self.doubted = self._untold = True

    def came_unasked(self, data: bytes) -> None:
        """`data` came while no request was under way; empty where the connection was closed."""
        if data and not data.startswith(REQUEST_TIMEOUT_HEAD):
            self.doubt()

    def check(self, reply: Reply, before: Mark | None, prompt: int, *, used: bool) -> Mark | None:
        """The reply's mark. before: that of the reply before it on the same connection; prompt: see `prompt_of`; used:
        the connection had carried another request.

        Raises `RequestFailed` where it is a leftover; the connection must then be closed.
        """
        self._count(reply.usage.prompt_tokens, prompt, used)
        self._n_exposed += used
        reply_id = reply.request_id
        if reply_id is None:
            return None
        self._ids_vary = self._ids_vary or (self._latest is not None and self._latest != reply_id)
        self._latest = reply_id
        mark = Mark(reply_id, hash((reply.text, reply.reasoning)), prompt)
        earlier = self._marks.get(reply_id)
        if earlier is None:
            self._marks[reply_id] = mark
            if len(self._marks) > MAX_REPLIES:
                self._marks.popitem(last=False)
        elif earlier.text != mark.text:
            self._ids_shared = True
        elif self._ids_vary and not self._ids_shared and (mark == before or earlier.prompt != prompt):
            self._marks[reply_id] = Mark(reply_id, ~mark.text, prompt)  # a third time the reply is believed
            self.doubt()
            raise RequestFailed("malformed", "the reply is an earlier one of this server once more: a leftover")
        return mark

    def note(self) -> str | None:
        """What is to be noted of the next reply: once, after the first doubt."""
        if not self._untold:
            return None
        self._untold = False
        return f"{AFTER_LEFTOVER}; {self._n_exposed} before this one came over used connections and may be wrong"

    def may_be_one(self, reply_id: str | None, before: Mark | None) -> bool:
        """Whether a reply under way may be a leftover, which only its end would show for certain."""
        return self._ids_vary and before is not None and reply_id == before.reply_id

    def _count(self, tokens: int | None, prompt: int, used: bool) -> None:
        """Raises `RequestFailed` where the prompt is known to have another number of tokens."""
        if tokens is None or not self._steady:
            return
        expected = self._counts.setdefault(prompt, tokens)
        if expected == tokens:
            self._counts.move_to_end(prompt)
            self._doubted_counts.pop(prompt, None)
            self._n_repeated += len(self._counts) > 1  # a server that always states one number proves nothing
            while len(self._counts) > MAX_PROMPTS:
                self._counts.popitem(last=False)
            return
        if (
            not (used or self.doubted)
            or self._n_repeated < STEADY_COUNTS
            or self._doubted_counts.pop(prompt, None) == tokens
        ):
            self._steady = False
            return
        self._doubted_counts[prompt] = tokens
        self.doubt()
        raise RequestFailed(
            "malformed", f"the reply is to a prompt of {tokens} tokens, and this one has {expected}: a leftover"
        )


def prompt_of(body: bytes) -> int:
    """A hash of the prompt in the body of a request, by which equal prompts are known."""
    start = body.find(b',"messages":')  # either is the last field of a body
    if start < 0:
        start = body.find(b',"prompt":')
    return hash(body[max(start, 0) :])


def ended_exactly(reply: Reply) -> bool:
    """Nothing followed the reply's end; else its connection carries no other request."""
    return not reply.notes or AFTER_THE_END.isdisjoint(reply.notes)
