"""The lines of a file that a stranger may have made: split at `\\n` only, each held up to a bound.

Text of a model may hold U+2028, U+0085 or a form feed, at which other readers of lines split; here they are inside a
line. A line over its bound is passed over without being held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from harness.core import codec
from harness.core.files import READ_BUFFER_BYTES
from harness.core.limits import MAX_RECORD_BYTES

BOM = b"\xef\xbb\xbf"

MAX_LINE_BYTES = MAX_RECORD_BYTES + len(BOM) + len(b"\r")
"""Longest line that is held: a record, and what an editor adds."""


class Line(NamedTuple):
    """A stretch of the file up to and including its newline. data: without the newline; None when over the bound.

    number: from 1; offset, length: in bytes. complete: it ends in a newline.
    """

    number: int
    offset: int
    length: int
    data: bytes | None
    complete: bool


def lines(file: BinaryIO, offset: int = 0, number: int = 1) -> Iterator[Line]:
    """The lines from `offset`, of which the first has this number; the last may be incomplete."""
    file.seek(offset)
    while data := file.readline(MAX_LINE_BYTES):
        length, complete = len(data), data.endswith(b"\n")
        content: bytes | None = data[:-1] if complete else data
        if length == MAX_LINE_BYTES and not complete:
            content = None
            while not complete and (data := file.readline(READ_BUFFER_BYTES)):
                length, complete = length + len(data), data.endswith(b"\n")
        yield Line(number, offset, length, content, complete)
        offset += length
        number += 1


def appended_lines(file: BinaryIO) -> Iterator[Line]:
    """The lines of a file of `LineFile`: without a torn tail, with a last object that only lacks its newline."""
    return (line for line in lines(file) if line.complete or (line.data is not None and is_object(line.data)))


def is_object(tail: bytes) -> bool:
    """Whether bytes without a newline are a whole JSON object: no beginning of an object is an object itself."""
    try:
        codec.decode(tail, dict)
    except codec.DecodeError:
        return False
    return True
