"""The elements of a JSON array in a file, one at a time: any file is read in the memory of its longest element.

    slice ─▶ buffer: … , {"a": 1, "b": [2]} , {"a": …          depth 1 between the elements of the array
                         └── an element ──┘                    an element ends where the depth is 1 again

The scanner only finds where elements end: it follows brackets, and strings, in which brackets mean nothing. What is
inside an element is left to the caller's parser, which refuses what is no JSON. Each byte is looked at once, also where
a string goes over many slices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

SLICE_BYTES = 1024 * 1024
"""Bytes that are read at a time."""

_BLANKS = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_TO_BRACKET = re.compile(rb'[^"\[\]{},]*+')


class NoArrayError(ValueError):
    """The text is no JSON array, or not a whole one. The message is the end of a sentence that begins with the file."""


def begins_array(file: IO[bytes]) -> bool:
    """Whether the first character of the file is a bracket; the position in the file moves."""
    return file.read(SLICE_BYTES).removeprefix(_BOM).lstrip(_BLANKS).startswith(b"[")


def elements(file: IO[bytes], max_bytes: int) -> Iterator[bytes]:
    """The text of each element of the array in the file, in order.

    max_bytes: longest element. Raises `NoArrayError`.
    """
    scanner = _Scanner(max_bytes)
    while data := file.read(SLICE_BYTES):
        yield from scanner.feed(data)
    yield from scanner.close()


class _Scanner:
    """Finds the ends of elements in slices of the file.

    _buffer: the bytes since the last element ended. _scanned: how many of them were scanned. _depth, _in_string: how
    many brackets are open there, and whether a string is. _closed: whether the array's own bracket was closed.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._scanned = 0
        self._depth = 0
        self._in_string = False
        self._n = 0  # elements that have ended
        self._closed = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes of the file; yield each element of the list that ends in them. Raises `NoArrayError`."""
        self._buffer += data
        start = 0  # where the current element begins in the buffer
        for comma in self._ends():
            yield self._element(start, comma)
            start = comma + 1
        # The rest is the beginning of one element, so the buffer is never much longer than the longest element.
        del self._buffer[:start]
        self._scanned -= start
        if len(self._buffer) > self._max_bytes:
            raise NoArrayError(f"row {self._n + 1} is longer than {self._max_bytes} bytes")

    def close(self) -> Iterator[bytes]:
        """Yield the last element, when the file has ended. Raises `NoArrayError` if the list is not closed."""
        if not self._closed:
            raise NoArrayError(f"ends in row {self._n + 1}: the list is not closed")
        text = bytes(self._buffer).rstrip(_BLANKS)
        if not text.endswith(b"]"):
            raise NoArrayError("holds text behind the end of the list")
        text = text[:-1].strip(_BLANKS)
        if text or self._n:
            yield text

    def _element(self, start: int, end: int) -> bytes:
        self._n += 1
        return bytes(self._buffer[start:end]).strip(_BLANKS)

    def _ends(self) -> Iterator[int]:
        """Scan the rest of the buffer; yield the position of each comma between two elements. Raises `NoArrayError`."""
        buffer, position = self._buffer, self._scanned
        while position < len(buffer):
            if self._in_string:
                position = _IN_STRING.match(buffer, position).end()  # type: ignore[union-attr]
                # A backslash at the end of the slice waits for the character behind it.
                if position == len(buffer) or buffer[position] == ord("\\"):
                    break
                self._in_string = False
                position += 1
                continue
            # One call of the pattern passes over all that can neither end an element nor begin a string.
            position = _TO_BRACKET.match(buffer, position).end()  # type: ignore[union-attr]
            if position == len(buffer):
                break
            sign = buffer[position]
            if self._closed:
                raise NoArrayError("holds text behind the end of the list")
            if sign == ord('"'):
                self._in_string = True
            elif sign in b"[{":
                self._depth += 1
                if self._depth == 1:  # the array itself: nothing of it belongs to an element
                    buffer[: position + 1] = b" " * (position + 1)
            elif sign in b"]}":
                self._depth -= 1
                self._closed = self._depth == 0
            elif self._depth == 1:
                yield position
            position += 1
        self._scanned = position
