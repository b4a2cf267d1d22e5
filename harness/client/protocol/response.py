"""Reads an HTTP/1 response from bytes: its head, the pieces of its body, where it ends. No I/O and no clock.

Whatever httpx and curl both accept is accepted here, and yields the same bytes; what only one of them accepts is
accepted where that is safe for a client of one server. So this is more lenient than RFC 9112: lines end in CR LF or LF.

    step       what is read                                             then
    head       blank lines, a line `HTTP/x.y NNN …`, lines              head after status 1xx except 101, else by
               `name: value`; a line that begins with a blank           the next table
               continues the one before it; ends at a blank line
    size       a line: hexadecimal digits, then blanks or `;` and       chunk; trailer, if the size is 0
               whatever follows
    chunk      that many bytes                                          chunk end
    chunk end  a blank line                                             size
    trailer    lines, which are ignored, to a blank line                end
    body       as many bytes as stated, or all                          end

    a head with                                                 is followed by
    status 101, 204 or 304                                      nothing
    `chunked` as its last transfer coding except `identity`     chunks, whatever length it states
    another transfer coding                                     a body until the connection ends
    a length, or the same several times                         a body of that many bytes
    none of these                                               a body until the connection ends

Anything else is malformed; what came before it is kept. A response that states a length in addition to its chunks, or
that is followed by more bytes, is the last on its connection.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Literal

from harness.core.sanitize import quoted

MAX_HEAD_BYTES = 300 * 1024
"""Longest head (status line and headers) of a response or of a proxy's answer; curl has the same limit."""

MAX_INTERIM_HEADS = 100
"""Largest number of heads of status 1xx before the response's own head."""

_find_head_end = re.compile(rb"\n\r?\n").search
_status_line = re.compile(r"HTTP/(\d(?:\.\d)?) +(\d{3})(?:[ \t].*)?\Z", re.I | re.S).match
_fold = re.compile(r"\r?\n[ \t]+").sub
_length = re.compile(r"[0-9]{1,20}\Z").match
_size = re.compile(rb"([0-9A-Fa-f]{1,20})(?:[ \t;].*)?\Z", re.S).match
_figures = re.compile(rb"[0-9A-Fa-f]+\Z").match

_TOGETHER = ("content-length", "transfer-encoding", "connection")
"""Headers whose values are lists: several headers of one name are joined. Of other headers, the last one counts."""

_LAST_CHUNK = b"0\r\n\r\n"


@lru_cache(maxsize=4096)
def _size_line(length: int) -> bytes:
    """The first line of a chunk that has `length` bytes including its line ends."""
    fitting = (b"%x\r\n" % size for size in range(max(1, length - 10), length - 4))
    return next((line for line in fitting if len(line) + int(line, 16) + 2 == length), b"no chunk has this length")


def _whole_chunks(data: bytes) -> tuple[bytes, int]:
    """The bodies of the chunks that `data` begins with, and how many bytes follow them; none if a chunk is unusual.

    A usual chunk has no extension and no CR LF in its body.
    """
    n_last = len(_LAST_CHUNK) if data.endswith(b"\r\n" + _LAST_CHUNK) else 0
    parts = data[: len(data) - n_last].split(b"\r\n")
    sizes, bodies, rest = parts[:-1:2], parts[1::2], parts[-1]
    if len(parts) % 2 == 0:  # the last body is incomplete
        rest = sizes.pop() + b"\r\n" + bodies.pop()
    if not (all(bodies) and all(sizes) and _figures(b"".join(sizes))):
        return b"", len(data)
    if [int(size, 16) for size in sizes] != [*map(len, bodies)]:
        return b"", len(data)
    return b"".join(bodies), len(rest) + n_last


class Response:
    """The response to one request while it is being received.

    status: 0 until the head is complete. headers: keyed by lower-case name. ended: whether the response is complete.
    broken: how it breaks the rules above; "" if it does not. excess: bytes after its end, other than line ends. begun:
    whether any byte of a head has been received. chunked, until_closed: how the body ends; neither: by its length.
    """

    __slots__ = (
        "_head_bytes", "_left", "_n_interim", "_part", "_reusable", "_step", "begun", "broken", "chunked", "excess",
        "headers", "status", "until_closed",
    )  # fmt: skip

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.chunked = self.until_closed = self.begun = False
        self.broken, self.excess = "", b""
        self._step: Literal["head", "body", "size", "chunk", "chunk end", "trailer", "end"] = "head"
        self._part = bytearray()  # the unfinished head or line
        self._left = 0  # remaining bytes of the chunk or the body
        self._head_bytes = self._n_interim = 0
        self._reusable = False

    @property
    def ended(self) -> bool:
        """Whether the response is complete, though more bytes may follow on its connection."""
        return self._step == "end"

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request after this response."""
        return self.ended and self._reusable and not self.excess

    def feed(self, data: bytes) -> bytes:
        """Read the next bytes of the connection, and return those that belong to the body."""
        # The path of nearly all tokens: a read that is one chunk.
        if self._step == "size" and not self._part and data[-2:] == b"\r\n":
            line = _size_line(len(data))
            if data.startswith(line):
                return data[len(line) : -2]
        pieces, at, end, is_usual = [], 0, len(data), True
        while at < end and not self.broken:
            if self._step == "head":
                at = self._take_head(data, at)
            elif self._step in ("body", "chunk"):
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= 0 if self.until_closed else len(piece)
                if not self._left:
                    self._step = "chunk end" if self.chunked else "end"
            elif self._step == "end":
                self.excess = self.excess or data[at:].strip(b"\r\n")
                break
            elif (
                self._step == "size" and end - at == len(_LAST_CHUNK) and not self._part and data.endswith(_LAST_CHUNK)
            ):
                at, self._step = end, "end"
            elif self._step == "size" and is_usual and not self._part:
                chunks, n_rest = _whole_chunks(data[at:])
                pieces.append(chunks)
                at, is_usual = end - n_rest, False
            else:
                at = self._take_line(data, at)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _take_head(self, data: bytes, at: int) -> int:
        """Read the head, or the next part of it, and return the position after it."""
        searched = max(0, len(self._part) - 2)
        self._part += data[at:].lstrip(b"\r\n") if not self._part else data[at:]
        if not self._part:
            return len(data)
        self.begun = True
        found = _find_head_end(self._part, searched)
        n_head = len(self._part) if found is None else found.start()
        if not b"http/".startswith(self._part[:5].lower()):
            self.broken = f"the first line is {_shown(self._part[:80].splitlines()[0])}"
        elif n_head + self._head_bytes > MAX_HEAD_BYTES:
            self.broken = f"the headers exceed {MAX_HEAD_BYTES} bytes"
        elif found is not None:
            head, n_rest = self._part[:n_head].decode("latin-1"), len(self._part) - found.end()
            self._part.clear()
            self._head_bytes += n_head
            self._read_head(head)
            return len(data) - n_rest
        return len(data)

    def _read_head(self, head: str) -> None:
        """Read a head line by line."""
        status_line, *lines = _fold(" ", head).split("\n") if "\n " in head or "\n\t" in head else head.split("\n")
        if (found := _status_line(status_line.rstrip("\r"))) is None:
            self.broken = f"the first line is {quoted(status_line[:80])!r}"
            return
        version, status = found[1], int(found[2])
        if status < 200 and status != 101:
            self._n_interim += 1
            if self._n_interim > MAX_INTERIM_HEADS:
                self.broken = f"it has more than {MAX_INTERIM_HEADS} interim responses (status 1xx)"
            return
        values: dict[str, list[str]] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                self.broken = f"a header is {quoted(line[:80])!r}"
                return
            values.setdefault(name.strip().lower(), []).append(value.strip())
        headers = {name: ", ".join(each) if name in _TOGETHER else each[-1] for name, each in values.items()}
        self._end_head(version, status, headers)

    def _end_head(self, version: str, status: int, headers: dict[str, str]) -> None:
        """Decide from the status and the headers how the body ends."""
        stated, connection = headers.get("content-length"), _entries(headers.get("connection"))
        codings = [coding for coding in _entries(headers.get("transfer-encoding")) if coding != "identity"]
        self.chunked = codings[-1:] == ["chunked"]
        if status in (101, 204, 304):
            self._step = "end"
        elif self.chunked:
            self._step = "size"
        elif codings or stated is None:
            self._step, self._left, self.until_closed = "body", sys.maxsize, True
        elif len(lengths := {*_entries(stated)}) == 1 and _length(length := lengths.pop()):
            self._left = int(length)
            self._step = "body" if self._left else "end"
        else:
            self.broken = f"invalid Content-Length {quoted(stated)!r}"
            return
        self.status, self.headers, self._head_bytes = status, headers, 0
        stays = version >= "1.1" or "keep-alive" in connection
        closes = "close" in connection or (self.chunked and stated is not None)
        self._reusable = stays and not (closes or self.until_closed or status == 101)

    def _take_line(self, data: bytes, at: int) -> int:
        """Read a line around or after a chunk, or the next part of it, and return the position after it."""
        stop = data.find(b"\n", at)
        self._part += data[at : stop if stop >= 0 else len(data)]
        if len(self._part) + self._head_bytes > MAX_HEAD_BYTES:
            self.broken = f"the trailers exceed {MAX_HEAD_BYTES} bytes"
        elif self._step == "chunk end" and self._part.strip(b"\r"):
            self.broken = "a chunk is longer than its declared size"
        if stop < 0 or self.broken:
            return len(data)
        line = bytes(self._part).rstrip(b"\r")
        self._part.clear()
        if self._step == "chunk end":
            self._step = "size"
        elif self._step == "trailer":
            self._head_bytes += len(line) + 1
            self._step = "trailer" if line else "end"
        elif (size := _size(line)) is None:
            self.broken = f"invalid chunk size {_shown(line)}"
        else:
            self._left = int(size[1], 16)
            self._step = "chunk" if self._left else "trailer"
        return stop + 1


def _entries(value: str | None) -> list[str]:
    """The entries, in lower case, of a header that is a list; none if there is no such header."""
    return [entry for part in value.lower().split(",") if (entry := part.strip())] if value else []


def _shown(line: bytes | bytearray) -> str:
    return repr(quoted(bytes(line[:80]).decode("latin-1")))
