"""Writing files whole, opening files without trusting what is at the path, and finding the shipped data.

Writing: a file is written under a temporary name and then renamed, so a reader sees the old content or the new, never
half of it. The writer locks the temporary file until the rename. A temporary file without a lock was left by a killed
writer, and the next write in the same folder removes it.

    .NAME.<16 hex digits>.tmp, locked      a writer is writing it
    .NAME.<16 hex digits>.tmp, not locked  a killed writer left it; it is removed
    NAME                                   whole: the old content or the new

Opening: a run folder may come from a stranger, for example in an archive. So all packages open every file of a run with
`open_untrusted`, and a file that the user names with `open_named`; tests/test_opening.py checks this.

    what is at the path      open_untrusted (a file of a run)    open_named (a file that the user names)
    a regular file           opened                              opened
    a link to one            rejected: it may lead anywhere      opened: the user chose it
    a pipe, socket, device   rejected without waiting            rejected without waiting
    a folder                 rejected                            rejected
    nothing                  FileNotFoundError                   FileNotFoundError

Not covered: a program that swaps files for links while they are read.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from harness.core import channel, codec
from harness.core.errors import NotWritable, StoreError
from harness.core.sanitize import quoted

T = TypeVar("T")


def write_atomically(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Replace the file at `path` with `data` (bytes, or pieces of bytes), whole or not at all. Raises `StoreError` if
    the write fails.
    """
    with replacing(path) as file:
        file.writelines((data,) if isinstance(data, bytes) else data)


def write_unsynced(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. A power failure may leave it empty, so its readers must check its content.
    Raises `StoreError`.
    """
    with replacing(path, synced=False) as file:
        file.write(data)


_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
"""Names of temporary files."""

MAX_TEMPORARY_AGE_SECONDS = 3600.0
"""On a file system without locks, a temporary file older than this counts as left by a killed writer."""


@contextlib.contextmanager
def replacing(path: Path, *, synced: bool = True) -> Iterator[BinaryIO]:
    """Context manager: yields an open file whose content replaces `path` when the block ends without an exception.

    After an exception, `path` is unchanged. Steps: temporary file, fsync, rename, fsync of the folder. Also removes
    temporary files of killed writers from the folder. synced: if false, only the temporary file and the rename. Raises
    `StoreError` with the path and the free space if the write fails.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if synced:
            remove_leftovers(path.parent)
        temporary, handle = _new_temporary(path)
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            if synced:  # before the rename, so that after a power failure the name does not refer to an empty file
                os.fsync(file.fileno())
            temporary.replace(path)  # before the file is closed, which releases the lock
            temporary = None
        if synced:
            sync_folder(path.parent)
    except OSError as error:
        raise disk_error(path, error) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def wait_for_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> None:
    """Lock an open file; report the wait if another process holds the lock for long. Raises `OSError`.

    kind: `LOCK_SH` for a reader, because NFS grants an exclusive lock only on a file that is open for writing.
    """
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        with channel.waiting("another process to unlock a file that this process writes"):
            fcntl.flock(descriptor, kind)


def _new_temporary(path: Path) -> tuple[Path, int]:
    """Create a temporary file next to `path`; return its path and the descriptor that locks it. Raises `OSError`."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        # The user's umask restricts these permissions.
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with contextlib.suppress(OSError):  # a file system without locks: there, `_is_left_behind` uses the file's age
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return temporary, handle
        os.close(handle)  # another writer removed it as left behind before it was locked


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove temporary files of killed writers from `folder`, and return the removed paths. Skips files that may not be
    removed."""
    removed: list[Path] = []
    try:
        leftovers = [folder / name for name in os.listdir(folder) if _TEMPORARY.fullmatch(name)]  # noqa: PTH208 - half the time
    except OSError:  # the folder may be writable but not listable
        return removed
    for path in leftovers:
        with contextlib.suppress(OSError):  # its writer, or another remover, was faster
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if _is_left_behind(descriptor):
                    path.unlink()
                    removed.append(path)
            finally:
                os.close(descriptor)
    return removed


def _is_left_behind(descriptor: int) -> bool:
    """Whether the writer of a temporary file is gone.

    descriptor: the open temporary file's number.
    """
    state = os.fstat(descriptor)
    # In a foreign folder, anything may have such a name.
    if not stat.S_ISREG(state.st_mode):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return time.time() - state.st_mtime > MAX_TEMPORARY_AGE_SECONDS
    return True


def sync_folder(folder: Path) -> None:
    """Make a rename or a new file in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


FULL = {errno.ENOSPC, errno.EDQUOT}
"""Error numbers for "no room left": on the file system, or in this user's quota."""

FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
"""Error numbers for "not writable": by this user, or by anyone."""


def remove(path: Path) -> None:
    """Remove the file if it exists. Raises `StoreError`."""
    with disk_errors(path):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """A `with` block that reads a file of a run: file system errors become a `StoreError`."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """A `with` block that writes to `path`: file system errors become a `StoreError` (`disk_error`)."""
    try:
        yield
    except OSError as error:
        raise disk_error(path, error) from error


def disk_error(path: Path, error: OSError) -> StoreError:
    """The error for a write to `path` that the file system rejected; it says what to do, or how much space is free."""
    existing = path
    # The free space can only be queried for a path that exists.
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if isinstance(error, FileExistsError | NotADirectoryError):
        return StoreError(f"cannot write {path}: {existing} is not a folder; choose another path")
    if error.errno in FORBIDDEN:
        folder = existing if existing.is_dir() else existing.parent
        return NotWritable(f"cannot write {path}: {error.strerror}. Make {folder} writable, or work on a copy of it")
    try:
        free = f"{shutil.disk_usage(existing).free / 1e6:.0f} MB free"
    except OSError:
        free = "free space unknown"
    again = ". Free some space and run the same command again; stored data is kept" if error.errno in FULL else ""
    return StoreError(f"cannot write {path}: {error.strerror or error} ({free} at {existing}){again}")


# ---- reading


READ_BUFFER_BYTES = 256 * 1024
"""Buffer size of an open file: journals are read from the first byte to the last."""

_KINDS = {
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFDIR: "folder",
}

LINK = "it is a symbolic link, but run files must be regular files; copy the run folder with `cp -rL`"
"""Why a link in a run folder is rejected, and what to do."""


def real(path: Path) -> Path:
    """The absolute path without links; of a link that leads to itself, the path of the link.

    `Path.resolve` raises RuntimeError for such a link in Python 3.11 and 3.12.
    """
    return Path(os.path.realpath(path))


def open_untrusted(path: Path) -> io.BufferedReader:
    """Open a file of a run, which a stranger may have made. Raises `OSError`, also for a link, a pipe or a folder."""
    return _open(path, os.O_NOFOLLOW)


def read_untrusted(path: Path, max_bytes: int, too_large: str) -> bytes:
    """All bytes of a file of a run. too_large: the end of the message for a file of more than `max_bytes`.

    Raises `FileNotFoundError`, and `StoreError` for a file that is too large or cannot be read.
    """
    try:
        with open_untrusted(path) as file:
            data = file.read(max_bytes + 1)  # one more byte shows that the file exceeds the limit
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error
    if len(data) > max_bytes:
        raise StoreError(f"{path} is larger than {max_bytes} bytes{too_large}")
    return data


def read_record(path: Path, kind: type[T], max_bytes: int, *, what: str, remedy: str) -> T | None:
    """The record in a small JSON file of a run, checked against `kind`; None without a file. Raises `StoreError`.

    what: the record as a noun, remedy: a sentence on what to do, both for the error.
    """
    try:
        data = read_untrusted(path, max_bytes, f": too large for {what}. {remedy}")
        return codec.decode(codec.with_present_keys(data, codec.former_keys(kind)), kind)
    except FileNotFoundError:
        return None
    except codec.DecodeError as error:
        raise StoreError(f"{path} is not {what} ({quoted(str(error))}). {remedy}") from error


def open_named(path: Path) -> io.BufferedReader:
    """Open a file that the user names; a link is followed. Raises `OSError`, also for a pipe or a folder."""
    return _open(path, 0)


def read_named(path: Path, max_bytes: int) -> bytes:
    """At most `max_bytes` + 1 bytes of a file that the user names; more than `max_bytes` mean that it is too long.

    Raises `OSError`.
    """
    with open_named(path) as file:
        return file.read(max_bytes + 1)


def checksum(path: Path) -> str:
    """The SHA-256 of a file that the user names, in hex. Raises `OSError`."""
    with open_named(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_at(descriptor: int, length: int, offset: int) -> bytes:
    """`length` bytes of an open file from byte `offset`; fewer only at the end of the file. Raises `OSError`."""
    data = os.pread(descriptor, length, offset)
    if len(data) == length or not data:
        return data
    # pread may return fewer bytes than the file has, but returns none only at its end.
    parts = []
    while data:
        parts.append(data)
        length, offset = length - len(data), offset + len(data)
        data = os.pread(descriptor, length, offset) if length else b""
    return b"".join(parts)


def _open(path: Path, flags: int) -> io.BufferedReader:
    """Open a regular file for reading; pipes, devices and sockets are rejected without waiting. Raises `OSError`.

    flags: additional flags for `os.open`.
    """
    # O_NONBLOCK: opening a pipe that has no writer would otherwise block forever. Regular files ignore it.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
    except OSError as error:
        if error.errno == errno.ELOOP and flags & os.O_NOFOLLOW:
            raise OSError(errno.ELOOP, LINK, str(path)) from error
        if error.errno == errno.ENXIO:  # the kernel's answer for a socket
            raise _not_a_file_error(stat.S_IFSOCK, path) from error
        raise
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise _not_a_file_error(kind, path)
    raw = io.FileIO(str(path), opener=lambda _path, _flags: descriptor)  # with the path, errors can name the file
    return io.BufferedReader(raw, READ_BUFFER_BYTES)


def _not_a_file_error(kind: int, path: Path) -> OSError:
    """The error for a path that is not a regular file. kind: as returned by `stat.S_IFMT`."""
    return OSError(errno.EINVAL, f"not a regular file but a {_KINDS.get(kind, 'special file')}", str(path))


# ---- shipped data

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped_folder(name: str, in_checkout: str) -> Path:
    """The folder of shipped data: `name` inside the installed package, or `in_checkout` relative to the checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / in_checkout
