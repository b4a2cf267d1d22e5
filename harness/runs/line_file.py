"""The one writer of files that grow by whole lines: events, corrected verdicts, batches, half-written answers.

    the file ends in                     before it is appended to
    nothing, or a newline                nothing is done
    a JSON object without its newline    the newline is written: an object that ends is whole
    anything else: a torn tail           the tail goes to NAME.set-aside, is synced there, and is cut off here

Invariant: a line that is appended begins where the file was empty or ended in a newline, so two lines are never glued;
and `append` either leaves its line whole or, where the disk refuses, leaves the file as it was. What a crash leaves is
a file with a torn tail at the most, which readers pass over (`lines.appended_lines`) and the next append moves away.
Between processes the order is that of a lock on the file itself, between threads that of a lock in memory. `durable`
says whether `append` waits for the disk. The journal of samples has a writer of its own, which syncs many samples at
once (`journal`), and shares `set_aside` and `write_whole`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from harness.core.files import disk_error, read_at, sync_folder
from harness.core.limits import MAX_RECORD_BYTES
from harness.runs.lines import is_object
from harness.runs.safe_open import open_for_writing

COPY_BYTES = 64 * 1024
"""Bytes of a torn tail that are copied at a time."""


class LineFile:
    """A file open for appending, made when it is missing. A context manager; threads and processes may share it."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        """durable: `append` returns once its line is on disk. Raises `StoreError` when the file cannot be opened."""
        self._path = path
        self._durable = durable
        self._mutex = threading.Lock()
        self._descriptor = open_for_writing(path, os.O_RDWR | os.O_APPEND)

    def __enter__(self) -> LineFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, line: bytes) -> None:
        """Add `line`, which ends in its only newline: whole, or not at all. Raises `StoreError` then."""
        assert line.endswith(b"\n"), "a line with its newline"
        with self._mutex:
            try:
                with _locked(self._descriptor):
                    self._append(line)
            except OSError as error:
                raise disk_error(self._path, error) from error

    def sync(self) -> None:
        """Return when all that was appended is on disk. Raises `StoreError`."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise disk_error(self._path, error) from error

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        with self._mutex:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def _append(self, line: bytes) -> None:
        """Raises `OSError`."""
        descriptor = self._descriptor
        size = _ended(descriptor, self._path)
        try:
            write_whole(descriptor, line)
            if self._durable:
                os.fsync(descriptor)
                if size == 0:
                    sync_folder(self._path.parent)
        except OSError:
            with contextlib.suppress(OSError):  # a tail that stays is moved aside by the next append
                os.ftruncate(descriptor, size)
            raise


@contextlib.contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Hold the lock of the file, where there are locks to be had."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _ended(descriptor: int, path: Path) -> int:
    """Make the file end in a newline, or be empty. Returns its size. Raises `OSError`."""
    size = os.fstat(descriptor).st_size
    if size == 0 or read_at(descriptor, 1, size - 1) == b"\n":
        return size
    begin = _after_last_newline(descriptor, size)
    if size - begin <= MAX_RECORD_BYTES and is_object(read_at(descriptor, size - begin, begin)):
        write_whole(descriptor, b"\n")
        return size + 1
    set_aside(descriptor, begin, path.with_suffix(".set-aside"))
    return begin


def _after_last_newline(descriptor: int, size: int) -> int:
    end = size
    while end:
        begin = max(0, end - COPY_BYTES)
        newline = read_at(descriptor, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0


def set_aside(descriptor: int, begin: int, target: Path) -> None:
    """Move what follows `begin` to the end of the file `target`, with a newline behind it. Raises `OSError`.

    The copy is synced before the tail is cut off, so that it is never in neither file. A crash in between leaves it in
    both; the copy is then not made again.
    """
    length = os.fstat(descriptor).st_size - begin
    copy = open_for_writing(target, os.O_RDWR | os.O_APPEND)
    try:
        size = os.fstat(copy).st_size
        copied_at = size - length - 1
        try:
            if copied_at < 0 or not _equal(descriptor, begin, copy, copied_at, length):
                for step in range(0, length, COPY_BYTES):
                    write_whole(copy, read_at(descriptor, min(COPY_BYTES, length - step), begin + step))
                write_whole(copy, b"\n")
            os.fsync(copy)
        except OSError:
            os.ftruncate(copy, size)
            raise
        sync_folder(target.parent)
    finally:
        os.close(copy)
    os.ftruncate(descriptor, begin)


def _equal(left: int, left_offset: int, right: int, right_offset: int, length: int) -> bool:
    steps = ((step, min(COPY_BYTES, length - step)) for step in range(0, length, COPY_BYTES))
    return all(
        read_at(left, size, left_offset + step) == read_at(right, size, right_offset + step) for step, size in steps
    )


def write_whole(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`, however little the disk takes at a time. Raises `OSError`."""
    while data:
        n = os.write(descriptor, data)
        if n == 0:
            raise OSError(0, "the disk took no bytes")
        data = data[n:]


def append_line(path: Path, line: bytes) -> None:
    """Add one line to `path`, on disk when this returns. Raises `StoreError`, also for a link in its place."""
    with LineFile(path, durable=True) as file:
        file.append(line)
