"""Whole files of one JSON record a line: written atomically, read strictly."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar
from zlib import crc32

from harness.core import codec, packed
from harness.core.errors import StoreError
from harness.core.files import open_untrusted, read_at, write_atomically
from harness.core.inert import quoted
from harness.core.packed import Blocks
from harness.core.records import SCHEMA_VERSION
from harness.runs.lines import BOM, MAX_LINE_BYTES, Line, appended_lines, lines
from harness.runs.safe_open import make_folder, refuse_link

T = TypeVar("T")


def write_lines(path: Path, records: Iterable[object]) -> None:
    """Replace `path` by one line a record. Raises `StoreError` when the disk refuses or a link stands in its place."""
    make_folder(path.parent)
    refuse_link(path)
    write_atomically(path, map(line, records))


def line(record: object) -> bytes:
    """A record as it stands in such a file."""
    return codec.inert(codec.encode(record)) + b"\n"


def read_lines(path: Path, type: type[T], remedy: str) -> list[T]:
    """Every line of `path` as a `type`: see `iterate_lines`."""
    return list(iterate_lines(path, type, remedy))


def iterate_lines(path: Path, type: type[T], remedy: str) -> Iterator[T]:
    """The lines of `path`, each as a `type`. Blank lines, CRLF and a byte order mark are passed over.

    Raises `StoreError` naming the line and the `remedy` for a missing, damaged or newer file.
    """
    for number, plain in _lines(path, remedy, lines):
        yield _decoded(plain, type, path, number, remedy)


def read_appended(path: Path, type: type[T], remedy: str) -> list[T]:
    """Every line of a file that `LineFile` appends to, without a torn tail; none where there is no file.

    Raises as `iterate_lines` does for all else.
    """
    if not path.is_symlink() and not path.exists():
        return []
    return [_decoded(plain, type, path, number, remedy) for number, plain in _lines(path, remedy, appended_lines)]


class Filed(Blocks[T]):
    """The lines of a file as `write_lines` wrote them, each read and decoded when it is looked at.

    sha256: of the file. The file stays open as long as this object; one that is changed in its place raises
    `StoreError`, as a damaged line does. Raises `OSError` for a file that cannot be read.
    """

    def __init__(self, path: Path, type: type[T], remedy: str) -> None:
        super().__init__(type)
        self._path, self._remedy = path, remedy
        self._file = open_untrusted(path)
        weakref.finalize(self, self._file.close)
        self._checksums = array("I")  # of each block
        self._n = 0
        hashed = sha256()
        each = iter(partial(self._file.readline, MAX_LINE_BYTES), b"")
        while block := list(islice(each, packed.BLOCK_RECORDS)):
            data = b"".join(block)
            hashed.update(data)
            self._checksums.append(crc32(data))
            self._ends.append(self._ends[-1] + len(data))
            self._n += len(block)
        self.sha256 = hashed.hexdigest()

    def __len__(self) -> int:
        return self._n

    def _lines(self, block: int) -> list[bytes]:
        begin, end = self._ends[block], self._ends[block + 1]
        try:
            data = read_at(self._file.fileno(), end - begin, begin)
        except OSError as error:
            raise StoreError(f"cannot read {self._path}: {error.strerror or error}. {self._remedy}") from error
        if crc32(data) != self._checksums[block]:
            raise StoreError(f"{self._path} was changed while it was in use. {self._remedy}")
        return data.removesuffix(b"\n").split(b"\n")

    def _record(self, number: int, line: bytes, /) -> T:
        return _decoded(line, self._type, self._path, number + 1, self._remedy)


def _decoded(plain: bytes, type: type[T], path: Path, number: int, remedy: str) -> T:
    """The record of line `number`. Raises `StoreError`."""
    try:
        record = codec.decode(plain, type)
    except codec.DecodeError as error:
        raise StoreError(f"{path}, line {number} is damaged: {quoted(str(error))}. {remedy}") from error
    if getattr(record, "schema", 0) > SCHEMA_VERSION:
        raise StoreError(
            f"{path}, line {number} has schema {record.schema}; "  # type: ignore[attr-defined]
            f"this harness reads schemas up to {SCHEMA_VERSION}. Use a newer harness."
        )
    return record


def _lines(path: Path, remedy: str, split: Callable[[BinaryIO], Iterator[Line]]) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line without its end) of the lines that are not blank. Raises `StoreError`."""
    try:
        with open_untrusted(path) as file:
            for line in split(file):
                if line.data is None:
                    raise StoreError(
                        f"{path}, line {line.number} is {line.length} bytes long: none of ours is. {remedy}"
                    )
                data = line.data.removeprefix(BOM) if line.number == 1 else line.data
                if plain := data.removesuffix(b"\r"):
                    yield line.number, plain
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}. {remedy}") from error
