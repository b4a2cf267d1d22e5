"""Files with one JSON record per line: how they are split, appended to, replaced as a whole, and read strictly.

    the file ends in                     before it is appended to (`LineFile`)
    nothing, or a newline                nothing is done
    a JSON object without its newline    the newline is written, since an object with its last brace is whole
    anything else: a torn tail           the tail is cut off

Invariant: a line is appended only to a file that is empty or ends in a newline, so two lines never run together, and
`append` writes the whole line or, if the disk write fails, leaves the file unchanged. A crash leaves at most a torn
tail, which readers skip (`appended_lines`) and the next append cuts off.
A lock on the file separates the appends of processes, a lock in memory those of threads. `durable` specifies whether
`append` waits for the disk; the journal of samples syncs once a second instead (`journal`).

Lines are split only at `\\n`, because a model's text may contain U+2028, U+0085 or a form feed, at which other line
readers split. A line longer than the limit is skipped without being kept in memory.

Writes stay inside the run folder: the folder itself may be a link (results on another disk), but nothing in it may be.
A planted symbolic link, pipe or device is rejected, never followed. Files are read by `harness.core.files`.
Not covered: a writer that replaces folders with links during the run.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.files import (
    READ_BUFFER_BYTES,
    disk_error,
    disk_errors,
    open_untrusted,
    read_at,
    sync_folder,
    wait_for_lock,
    write_atomically,
)
from harness.core.records import MAX_RECORD_BYTES, SCHEMA_VERSION
from harness.core.sanitize import quoted
from harness.runs import record

# ---- writes inside the run folder


def make_folder(path: Path) -> None:
    """Make `path`, which must not be a link. Raises `StoreError`."""
    with disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    refuse_link(path)  # after `mkdir`, which treats a link to a folder as a folder


def open_for_writing(path: Path, flags: int) -> int:
    """A descriptor of the regular file `path`, which is created if missing; a link is rejected.

    Raises a `StoreError` that names the path, for a link, a device, a pipe, or a read-only or vanished folder.
    """
    try:
        # Non-blocking mode has no effect on a regular file but protects against a planted pipe.
        descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        refuse_link(path)
        raise disk_error(path, error) from error
    # The descriptor is checked, since the path may by now refer to a different file.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path} is not a regular file. Move it elsewhere.")
    return descriptor


def refuse_link(path: Path) -> None:
    """Raises `StoreError` if `path`, about to be replaced, is a symbolic link. Its folder: see `make_folder`."""
    if path.is_symlink():
        raise StoreError(
            f"{path} is a symbolic link, and a run never writes through symbolic links. Replace it with a copy of what "
            "it links to."
        )


# ---- splitting


BOM = b"\xef\xbb\xbf"

MAX_LINE_BYTES = MAX_RECORD_BYTES + len(BOM) + len(b"\r")
"""Longest line that is read, in bytes: a record plus anything added by an editor."""


class Line(NamedTuple):
    """A part of the file up to a newline. raw: None if the line is too long.

    number: line number, from 1. offset, length: in bytes. complete: whether it ends in a newline.
    """

    number: int
    offset: int
    length: int
    raw: bytes | None
    complete: bool

    @property
    def data(self) -> bytes | None:
        """The line without its newline; None if it is too long. This makes a copy, and a line may have megabytes."""
        return self.raw[:-1] if self.raw is not None and self.complete else self.raw


def lines(file: BinaryIO, offset: int = 0, number: int = 1) -> Iterator[Line]:
    """The lines from `offset` on; the last one may be incomplete. number: of the first of these lines.

    Each line has the file's content at one point in time, even if a torn tail is cut off and overwritten during the
    read.
    """
    descriptor, end_of_buffer = file.fileno(), file.seek(offset)
    while data := file.readline(MAX_LINE_BYTES):
        if offset + len(data) > end_of_buffer:
            # Read in two parts: the first may be from a torn tail, and the second from the line that replaced it.
            if offset < end_of_buffer and read_at(descriptor, len(data), offset) != data:
                end_of_buffer = file.seek(offset)
                continue
            end_of_buffer = os.lseek(descriptor, 0, os.SEEK_CUR)
        length, complete = len(data), data.endswith(b"\n")
        raw: bytes | None = data
        if length == MAX_LINE_BYTES and not complete:
            raw = None
            while not complete and (data := file.readline(READ_BUFFER_BYTES)):
                length, complete = length + len(data), data.endswith(b"\n")
        yield Line(number, offset, length, raw, complete)
        offset += length
        number += 1


def appended_lines(file: BinaryIO) -> Iterator[Line]:
    """The lines of a file written by `LineFile`, without a torn tail.

    A last line that is a whole JSON object without a newline does not count as a torn tail.
    """
    return (line for line in lines(file) if line.complete or (line.raw is not None and is_object(line.raw)))


def is_object(tail: bytes) -> bool:
    """Whether bytes without a newline are a whole JSON object; a truncated object is never one."""
    try:
        codec.decode(tail, dict)
    except codec.DecodeError:
        return False
    return True


# ---- appending


TAIL_BYTES = 64 * 1024
"""Number of bytes of a torn tail that are searched at a time for the preceding newline."""


class LineFile(contextlib.AbstractContextManager["LineFile"]):
    """A file open for appending; created if missing. A context manager; threads and processes may share it.

    descriptor: the open file's number; -1 once it is closed. size: the file's size in bytes after the last append.
    """

    def __init__(self, path: Path, *, durable: bool, shared: bool = True) -> None:
        """durable: whether `append` returns only once its line is on disk. shared: whether other processes may append,
        too.

        Raises `StoreError` when the file cannot be opened.
        """
        self._path = path
        self._durable = durable
        self._shared = shared
        self._mutex = threading.Lock()
        self.descriptor = open_for_writing(path, os.O_RDWR | os.O_APPEND)
        self.size = 0

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, line: bytes) -> None:
        """Append `line`, which ends in a newline. It may consist of several lines; all or none are appended.

        Raises `StoreError` and writes nothing if the disk write fails.
        """
        assert line.endswith(b"\n"), "a line, including its newline"
        # A flock belongs to the open file, which the threads of a process share, so it does not separate them.
        lock = hold_lock(self.descriptor) if self._shared else nullcontext()
        with self._mutex, disk_errors(self._path), lock:
            self._append(line)

    def cut_torn_tail(self) -> None:
        """Cut off a torn tail, so that the file ends in a newline or is empty. Raises `StoreError`."""
        with disk_errors(self._path):
            self.size = _cut_torn_tail(self.descriptor)

    def sync(self) -> None:
        """Return once all appended lines are on disk. Raises `StoreError`."""
        with disk_errors(self._path):
            getattr(os, "fdatasync", os.fsync)(self.descriptor)  # macOS has no fdatasync.

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        with self._mutex:
            if self.descriptor >= 0:
                os.close(self.descriptor)
                self.descriptor = -1

    def _append(self, line: bytes) -> None:
        """Append the line under the lock. Raises `OSError`."""
        # A line appended to a torn tail would run into it, and both would be lost.
        size = _cut_torn_tail(self.descriptor)
        try:
            write_whole(self.descriptor, line)
            if self._durable:
                os.fsync(self.descriptor)
                # The name of a new file is stored in its folder, which must be synced separately.
                if size == 0:
                    sync_folder(self._path.parent)
        except OSError:
            with contextlib.suppress(OSError):  # The next append cuts off a remaining tail.
                os.ftruncate(self.descriptor, size)
            raise
        self.size = size + len(line)


@contextlib.contextmanager
def hold_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """A context manager that holds the lock of the file, if the file system has locks. kind: as in `wait_for_lock`."""
    with contextlib.suppress(OSError):
        wait_for_lock(descriptor, kind)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _cut_torn_tail(descriptor: int) -> int:
    """Cut off a torn tail, so that the file ends in a newline or is empty. Returns its size. Raises `OSError`."""
    size = os.fstat(descriptor).st_size
    if size == 0 or read_at(descriptor, 1, size - 1) == b"\n":
        return size
    begin = _after_last_newline(descriptor, size)
    if size - begin <= MAX_RECORD_BYTES and is_object(read_at(descriptor, size - begin, begin)):
        write_whole(descriptor, b"\n")
        return size + 1
    os.ftruncate(descriptor, begin)
    return begin


def _after_last_newline(descriptor: int, size: int) -> int:
    """The offset after the last newline in the first `size` bytes; 0 if there is none.

    descriptor: the open file's number.
    """
    end = size
    while end:
        begin = max(0, end - TAIL_BYTES)
        newline = read_at(descriptor, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0


def write_whole(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`, even if the disk accepts only a little at a time. Raises `OSError`.

    descriptor: the open file's number.
    """
    while data:
        n = os.write(descriptor, data)
        if n == 0:
            raise OSError(0, "no data could be written to the disk")
        data = data[n:]


def append_line(path: Path, line: bytes) -> None:
    """Append one line to `path`, whose folder is created if missing; the line is on disk when this returns.

    Raises `StoreError`, including if `path` is a link.
    """
    make_folder(path.parent)
    with LineFile(path, durable=True) as file:
        file.append(line)


# ---- whole files of records


T = TypeVar("T")


class DamagedLineError(StoreError):
    """A line of a file is not an intact record. reason: the reason in words."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def write_lines(path: Path, records: Iterable[object], *, sealed: bool = False) -> None:
    """Replace `path` with one line per record. Raises `StoreError` if the disk write fails or `path` is a link.

    sealed: whether each line gets a checksum.
    """
    make_folder(path.parent)
    refuse_link(path)
    write_atomically(path, (line(record, sealed=sealed) for record in records))


def line(entry: object, *, sealed: bool = False) -> bytes:
    """A record as a line of the file. sealed: whether to add its checksum."""
    encoded = codec.escape_line(codec.encode(entry))
    return record.seal(encoded) if sealed else encoded + b"\n"


def iterate_lines(
    path: Path, type: type[T], remedy: str, *, sealed: bool = False, damaged: list[str] | None = None
) -> Iterator[T]:
    """The lines of `path`, each as a `type`; blank lines, CRLF and a byte order mark are skipped.

    sealed: a line that does not end in its own checksum is damaged, except in a file from an earlier version, in which
    no line has a checksum, valid or not. damaged: receives a description of each damaged line, which is then left out;
    None: a damaged line is an error.
    Raises a `StoreError` that names the line and the `remedy` for a missing, damaged or newer file.
    """
    # The search ends at the first line except in a file that is from an earlier version or was altered.
    sealed = sealed and any(record.STATES_CHECKSUM.search(plain) for _, plain in _lines(path, remedy, lines))
    for number, plain in _lines(path, remedy, lines):
        try:
            entry = _decode(plain, type, path, number, remedy, sealed=sealed)
        except DamagedLineError as error:
            if damaged is None:
                raise
            damaged.append(f"line {number} ({error.reason})")
        else:
            yield entry


def read_appended(path: Path, type: type[T], remedy: str, *, sealed: bool = False) -> list[T]:
    """Every line of a file that `LineFile` appends to, without a torn tail; empty for a missing file.

    Raises `StoreError` for any other damage. remedy: what an error tells the user to do. sealed: whether each line has
    a checksum.
    """
    # Closed even after damage: code that catches the error may append to the file, whose lock the generator holds.
    with contextlib.closing(_lines(path, remedy, appended_lines)) as numbered:
        former = codec.former_keys(type)  # once a file
        return [_decode(each, type, path, n, remedy, sealed=sealed, former=former) for n, each in numbered]


def _decode(
    plain: bytes,
    type: type[T],
    path: Path,
    number: int,
    remedy: str,
    *,
    sealed: bool = False,
    former: tuple[tuple[bytes, bytes], ...] = (),
) -> T:
    """The record of line `number`. Raises `StoreError`.

    remedy: what the error tells the user to do. sealed: whether the line has a checksum (a wrong one means damage).
    former: see `codec.former_keys`.
    """
    try:
        if sealed:
            record.verify(plain, type)
        entry = codec.decode(codec.with_present_keys(plain, former), type)
    except (record.Damaged, codec.DecodeError) as error:
        reason = quoted(str(error))
        raise DamagedLineError(f"{path}, line {number} is damaged: {reason}. {remedy}", reason) from error
    if (schema := getattr(entry, "schema", 0)) > SCHEMA_VERSION:
        raise StoreError(
            f"{path}, line {number} has schema {schema}, but this version of the harness supports only schemas up to "
            f"{SCHEMA_VERSION}. Upgrade the harness."
        )
    return entry


def _lines(path: Path, remedy: str, split: Callable[[BinaryIO], Iterator[Line]]) -> Generator[tuple[int, bytes]]:
    """Yield (number from 1, line without its end) for each line that is not blank. Raises `StoreError`. A file for
    appending may be missing.
    """
    is_growing = split is appended_lines
    try:
        # An append cuts off a torn tail; without the lock, a read could join the tail and the line that replaces it.
        with open_untrusted(path) as file, hold_lock(file.fileno(), fcntl.LOCK_SH) if is_growing else nullcontext():
            for line in split(file):
                if (data := line.data) is None:
                    raise StoreError(
                        f"{path}, line {line.number} is {line.length} bytes long; the harness never writes lines "
                        f"that long. {remedy}"
                    )
                data = data.removeprefix(BOM) if line.number == 1 else data
                if plain := data.removesuffix(b"\r"):
                    yield line.number, plain
    except OSError as error:
        if not is_growing or not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise StoreError(f"cannot read {path}: {error.strerror or error}. {remedy}") from error
