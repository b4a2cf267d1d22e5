"""HTTP/1.1 as far as a completion request needs it, and the detection of replies that answer another request.

`request_head` writes a request. `ResponseReader` reads a response, fed with bytes as they come; it does no I/O:

    state     the next bytes are                                      left when
    head      status line and headers; heads of status 1xx first      a blank line ends a head of status ≥ 200
    chunked   size line, data and CRLF of chunks; trailers            the chunk of size 0 and its trailers have come
    length    Content-Length bytes                                    the last of these bytes has come
    close     body bytes without a stated end                         the connection ends
    ended     nothing; any further byte is `surplus`                  never

Guarantees: how the bytes are split never changes the outcome; a body that ended early is never taken for whole; bytes
outside the framing never reach the body; every buffer is bounded. Not covered: compression, upgrades, HTTP/2.

`Leftovers` detects a reply that answers an earlier request on the same connection; its docstring has the theory.

Long: the reader of responses and the check of their order share the bounds and the notion of a whole response.
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
"""Longest head (status line and headers) of a response."""

MAX_HEADERS = 128
"""Largest number of header lines of a response: decoded, a short line takes twenty times its bytes."""

MAX_INTERIM_HEADS = 100
"""Largest number of heads of status 1xx before the response's own head."""

MAX_SIZE_LINE_BYTES = 4096
"""Longest size line of a chunk with its extensions, and longest trailers."""

_STATUS = re.compile(r"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [^\r\n]*)?\Z")
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,12})[ \t]*(?:;[^\r\n]*)?\Z")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*\Z")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_IMPOSSIBLE_IN_HEADS = re.compile(r"[\x00\r\n]")

_JOINED_HEADERS = frozenset({"connection", "content-encoding", "content-length", "transfer-encoding"})
"""Headers whose repeated lines are joined; of any other repeated header the last line counts."""

_LAST_CHUNK = b"0\r\n\r\n"
"""The end of a chunked body without trailers, as nearly all are."""

_NO_HEADERS: Mapping[str, str] = {}


class BadResponse(ValueError):
    """The bytes are not an HTTP/1.1 response, or break its framing."""


def request_head(url: str, headers: Mapping[str, str]) -> bytes:
    """The head of a POST to `url`, up to and without the value of Content-Length, so that it serves many requests.

    Raises `ValueError` if the URL or a header has a character that HTTP cannot carry.
    """
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    # A user and password in the URL are no part of the Host header.
    host = parts.netloc.rpartition("@")[2]
    for part, text in (("host", host), ("path", target)):
        # A line end in here would begin a header, or a request, of its own.
        if not text.isascii() or re.search(r"[\x00-\x20\x7f]", text):
            raise ValueError(f"the {part} holds characters that no URL can carry")
    lines = [f"POST {target} HTTP/1.1", f"Host: {host}"]
    for name, value in headers.items():
        if not _HEADER_VALUE.match(value) or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_|~-]+", name):
            raise ValueError(f"the header {name!r} holds characters, in its name or value, that HTTP cannot carry")
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "Content-Length: "]).encode("ascii")


class ResponseReader:
    """Parses one HTTP response while its bytes come.

    status: 0 until the head is whole. headers: by names in lower case. chunked: whether the body comes in chunks; False
    until the head is whole. ended: whether the response is whole. started: whether a byte of it has come. surplus: the
    first bytes that came behind its end, if any did.
    """

    __slots__ = (
        "_buffer",
        "_framing",
        "_interim",
        "_keep_alive",
        "_left",
        "chunked",
        "ended",
        "headers",
        "started",
        "status",
        "surplus",
    )

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = _NO_HEADERS
        self.chunked = False
        self.ended = False
        self.started = False
        self._framing = ""  # "chunked", "length" or "close"; empty until the head is whole
        self._buffer = b""  # an unfinished head, size line or trailer
        self._interim = 0  # heads of status 1xx
        self._left = 0  # bytes that are still to come: of the body (length), or of the chunk and its CRLF (chunked)
        self._keep_alive = True
        self.surplus = b""

    @property
    def at_chunk_border(self) -> bool:
        """Whether the next byte begins the size line of a chunk."""
        return self.chunked and not self._left and not self._buffer and not self.ended

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request after this response."""
        return self.ended and self._keep_alive and not self.surplus and self._framing != "close"

    def feed(self, data: bytes) -> bytes:
        """Read the next bytes of the response; returns the bytes of the body among them. Raises `BadResponse`."""
        self.started = True
        if not self._framing:
            data = self._read_head(data)
        if not data:
            return b""
        if self.ended:
            self.surplus = self.surplus or data[: len(REQUEST_TIMEOUT_HEAD)]
            return b""
        if self.chunked:
            if data == _LAST_CHUNK and not self._left and not self._buffer:
                self.ended = True
                return b""
            return self._read_chunks(data)
        if self._framing == "close":
            return data
        body = data[: self._left]
        self._left -= len(body)
        self.ended = not self._left
        self.surplus = data[len(body) : len(body) + len(REQUEST_TIMEOUT_HEAD)]
        return body

    def eof(self) -> str:
        """Note that the connection has ended. Returns why the response is incomplete; an empty text if it is whole."""
        # Without a length, the end of the connection is the only end there is. A cut looks the same; the parser tells
        # them apart by the finish reason.
        if self._framing == "close":
            self.ended = True
        if self.ended:
            return ""
        if not self._framing:
            return "the connection closed before the reply"
        return "the connection closed inside the body"

    def _read_head(self, data: bytes) -> bytes:
        """Read the head of the reply, after interim heads. Returns the bytes behind it, none while it is incomplete."""
        data = self._buffer + data
        position = 0
        while (end := data.find(b"\r\n\r\n", position)) >= 0:
            head = _parse_head(data[position:end])
            position = end + 4
            # 101 is final too: what follows it is no HTTP any more.
            if head.status >= 200 or head.status == 101:
                self.status, self.headers, self._keep_alive, self._framing, self._left = head
                self.chunked = head.framing == "chunked"
                self.ended = self._framing == "length" and not self._left
                self._buffer = b""
                return data[position:]
            self._interim += 1  # 100 Continue, 103 Early Hints: the true head follows
            if self._interim > MAX_INTERIM_HEADS:
                raise BadResponse(f"more than {MAX_INTERIM_HEADS} interim replies (status 1xx)")
        self._buffer = data[position:]
        # Refused at the first wrong byte: a server that speaks another protocol may keep the connection open and
        # silent.
        if len(self._buffer) > MAX_HEAD_BYTES or not b"HTTP/1.".startswith(self._buffer[:7]):
            raise BadResponse("the reply does not begin as HTTP/1.1 does")
        return b""

    def _read_chunks(self, data: bytes) -> bytes:
        """The data of the chunks in `data`, and in what was left over from before."""
        left = self._left
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        body = []
        position, end = 0, len(data)
        while position < end:
            if left > 2:  # inside a chunk's data; the last two bytes of `left` are its CRLF
                piece = data[position : position + left - 2]
                body.append(piece)
                position += len(piece)
                left -= len(piece)
                if left > 2:
                    break
            if left:  # inside the CRLF after a chunk's data
                piece = data[position : position + left]
                if not b"\r\n"[2 - left :].startswith(piece):
                    raise BadResponse("a chunk is not as long as it says")
                position += len(piece)
                left -= len(piece)
                continue
            # `line` is the end of the size line. While that has not come, any size but 0 keeps the code below from
            # taking the chunk for the last one.
            line = data.find(b"\r\n", position)
            size = chunk_size(data[position:line]) if line >= 0 else 1
            stop = line + 2 + size
            if size and line >= 0 and data[stop : stop + 2] == b"\r\n":  # the whole chunk is here
                body.append(data[line + 2 : stop])
                position = stop + 2
                continue
            # The search begins at the size line's own CRLF: without trailers, the blank line's CRLF follows it at once.
            last = data.find(b"\r\n\r\n", line) if line >= 0 and not size else 0
            if line < 0 or last < 0:  # the size or the trailers are not whole yet
                if end - position > MAX_SIZE_LINE_BYTES:
                    raise BadResponse("a chunk without a size")
                self._buffer = data[position:]
                break
            if not size:
                self.ended = True
                self.surplus = data[last + 4 : last + 4 + len(REQUEST_TIMEOUT_HEAD)]
                break
            position = line + 2
            left = size + 2
        self._left = left
        return body[0] if len(body) == 1 else b"".join(body)


class _Head(NamedTuple):
    """A response's head. framing: "chunked", "length" or "close". left: length of the body for "length", else 0."""

    status: int
    headers: Mapping[str, str]
    keep_alive: bool
    framing: str
    left: int


def begins_chunked_body(data: bytes) -> bool:
    """Whether `data` begins with the whole head of a response of status 200 whose body comes in chunks."""
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
    """The head in `data`, which lacks its blank line. Cached, since a server sends equal heads for a second or longer.

    Raises `BadResponse`.
    """
    # Latin-1 gives every byte a character, so a head in any encoding can be read.
    lines = data.decode("latin-1").split("\r\n")
    status = _STATUS.match(lines[0])
    if status is None:
        raise BadResponse("the reply does not begin as HTTP/1.1 does")
    if len(lines) > MAX_HEADERS + 1:
        raise BadResponse(f"{len(lines) - 1} headers, expected at most {MAX_HEADERS}")
    headers: dict[str, str] = {}
    for line in lines:
        # A bare CR or LF ends a line for some proxies and not for others, so the two would see different heads.
        if _IMPOSSIBLE_IN_HEADS.search(line):
            raise BadResponse("a head with a bare line end or a NUL")
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadResponse("a header without a colon")
        # This also refuses a blank before the colon: RFC 9112, 5.1, forbids it, since proxies disagree about such a
        # header.
        if not _HEADER_NAME.match(name):
            raise BadResponse(f"an impossible header name {name[:40]!r}")
        name, value = name.lower(), value.strip(" \t")
        # These headers decide the framing: the second line may contradict the first, and must not hide it.
        if name in _JOINED_HEADERS and name in headers:
            value = f"{headers[name]}, {value}"
        headers[name] = value
    connection = headers.get("connection", "").lower()
    # HTTP/1.0 closes after each reply unless it says otherwise.
    keep_alive = "close" not in connection and (status[1] == "1" or "keep-alive" in connection)
    # A head with both framings: by RFC 9112, 6.3, the chunks count, and the connection must not be used again.
    keep_alive &= not ("transfer-encoding" in headers and "content-length" in headers)
    return _Head(int(status[2]), headers, keep_alive, *_body_framing(int(status[2]), headers))


def _body_framing(status: int, headers: Mapping[str, str]) -> tuple[str, int]:
    """Tell how a response's body ends (framing), and its length if stated, by RFC 9112, 6.3. Raises `BadResponse`."""
    # These have no body, whatever length their headers state.
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


def chunk_size(line: bytes) -> int:
    """The size of a chunk in bytes. line: its size line, without the line end. Raises `BadResponse`."""
    size = stated_size(line)
    if size < 0:
        raise BadResponse("a chunk without a size")
    return size


# The events of a stream have few different lengths, so nearly every size line has been seen before.
@lru_cache(512)
def stated_size(line: bytes) -> int:
    """The size of a chunk in bytes, as `chunk_size`, but -1 if `line` is no size line."""
    match = _CHUNK_SIZE.match(line)
    return -1 if match is None else int(match[1], 16)


# ---- replies that answer another request


STEADY_COUNTS = 3
"""Number of replies that must have repeated their prompt's token count before a differing count is doubted."""

MAX_PROMPTS = 50_000
"""Largest number of prompts whose token count is remembered; the one that was asked longest ago is forgotten first."""

MAX_REPLIES = 4096
"""Largest number of replies of a server that are recognised if they come again; the oldest is forgotten first."""

REQUEST_TIMEOUT_HEAD = b"HTTP/1.1 408"
"""Head that proxies send on a connection that was idle for too long, before they close it; it answers no request."""


class Mark(NamedTuple):
    """The features of a reply by which it is recognised if it comes again. text: hash of text and reasoning. prompt:
    see `prompt_of`.
    """

    reply_id: str
    text: int
    prompt: int


class Leftovers:
    """Detects replies of one server that answer another request than the one that was sent (leftovers).

    A broken server or gateway may send a reply twice, or one that nobody asked for. The extra reply lies in the
    connection, and the next request on it takes the extra reply for its own answer:

        request 1 ──▶   ◀── reply 1 ◀── reply 1 again
        request 2 ──▶   takes "reply 1 again"; request 3 takes reply 2, and so on

    Signs, each of which makes the server "doubted":
    - bytes came while no request was waiting, or before the request was sent (`Connection`, `aio._Protocol`);
    - bytes came behind the end of a reply, in the same read;
    - a reply has the id and the text of the reply before it on this connection, or of a recent reply to another prompt.
      (For the same prompt a cache may answer so.) Some servers take the time of day for an id: once two texts had the
      same id, or one text came three times under one id, ids prove nothing any more;
    - a reply states another number of prompt tokens than this prompt had before, and the server's counts have been
      steady so far (`STEADY_COUNTS`). If the new number comes a second time, it is believed, and the counts prove
      nothing any more.

    Once a server is doubted, no connection to it carries a second request, so nothing can be left over. A reply that
    was under way at that moment over a connection with an earlier request is refused, and its request is sent again.
    The next reply gets a note on the replies that came over such connections before and may be wrong: it states their
    number. If no reply follows, this number is in `n_untold`. Not covered: before the first doubt, a leftover with a
    new id whose token count fits or is unknown.
    """

    def __init__(self) -> None:
        self.doubted = False
        self.n_exposed = 0  # replies over connections that had carried another request
        self._untold = False  # the next reply gets a note that states `n_exposed`
        self._latest: str | None = None  # the id of the latest reply
        self._ids_vary = False  # two replies had different ids
        self._ids_shared = False  # two replies with different texts had the same id
        self._marks: OrderedDict[str, Mark] = OrderedDict()  # id → mark, of the latest replies
        self._counts: OrderedDict[int, int] = OrderedDict()  # prompt → its number of tokens
        self._doubted_counts: dict[int, int] = {}  # prompt → the number that was refused last
        self._n_repeated = 0  # replies whose number of prompt tokens was the known one
        self._steady = True  # no number has changed so far

    def doubt(self) -> None:
        """Mark the server as doubted: it sent something that answers no request."""
        if not self.doubted:
            self.doubted = self._untold = True

    def judge_unasked(self, data: bytes) -> None:
        """Doubt the server if it sent `data` while no request was waiting. Empty `data`: it closed the connection."""
        if data and not data.startswith(REQUEST_TIMEOUT_HEAD):
            self.doubt()

    def check(self, reply: Reply, before: Mark | None, prompt: int, *, used: bool) -> Mark | None:
        """Check whether a finished reply is a leftover; returns its mark, None for a reply without an id.

        before: mark of the reply before it on the same connection. prompt: hash of the request's prompt (`prompt_of`).
        used: whether the connection had carried another request. Raises `RequestFailed` for a leftover, and for what
        may be one, a reply over a used connection after the first doubt; the caller must then close the connection.
        """
        if used and self.doubted:
            raise RequestFailed(
                "malformed",
                f"{AFTER_LEFTOVER}; this reply came over a connection that had carried another request, so it may be "
                "such a leftover",
            )
        self._count(reply.usage.prompt_tokens, prompt, used)
        self.n_exposed += used
        reply_id = reply.request_id
        if reply_id is None:
            return None
        # A server that states the same id for all replies proves nothing by it.
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
            # The changed mark lets the same reply pass if it comes a third time: the server's ids then prove nothing.
            self._marks[reply_id] = Mark(reply_id, ~mark.text, prompt)
            self.doubt()
            raise RequestFailed("malformed", "the server sent an earlier reply again, to another request")
        return mark

    def note(self) -> str | None:
        """The note that the next reply gets, once, after a reply seemed to belong to another request; else None."""
        if not self._untold:
            return None
        self._untold = False
        if not self.n_exposed:
            return f"{AFTER_LEFTOVER}; no reply is wrong by them: each came over a connection of its own"
        return f"{AFTER_LEFTOVER}; {self.n_exposed} before this one came over used connections and may be wrong"

    @property
    def n_untold(self) -> int:
        """Number of replies that may belong to other requests, if no reply has come since whose note could say so.

        0 if there is no such suspicion, or a note has stated the number.
        """
        return self.n_exposed if self._untold else 0

    def may_be_one(self, reply_id: str | None, before: Mark | None) -> bool:
        """Whether an unfinished reply may be a leftover; only the finished reply could show it for certain."""
        return self._ids_vary and before is not None and reply_id == before.reply_id

    def _count(self, tokens: int | None, prompt: int, used: bool) -> None:
        """Compare a reply's number of prompt tokens with the known one. Raises `RequestFailed` for a leftover.

        tokens: the reply's number; None: not stated. prompt: hash of the request's prompt. used: whether the connection
        had carried another request.
        """
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
        # Over a fresh connection to a server without doubt nothing can be left over, so the server itself counts
        # differently.
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
            "malformed",
            f"the reply states {tokens} prompt tokens, but this prompt has {expected}: a leftover of another request",
        )


def prompt_of(body: bytes) -> int:
    """A hash of the prompt in a request; equal prompts have equal hashes. body: the request, with or without head."""
    start = body.find(b',"messages":')  # our bodies end in the prompt, which stands in one of these two fields
    if start < 0:
        start = body.find(b',"prompt":')
    return hash(body[max(start, 0) :])


def ended_cleanly(reply: Reply) -> bool:
    """Whether nothing came behind the reply's end. If something did, its connection must not carry another request."""
    return not reply.notes or AFTER_THE_END.isdisjoint(reply.notes)
