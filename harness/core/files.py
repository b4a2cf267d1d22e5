"""Files written whole and opened with care: no half-written file, no planted link, no pipe that is waited for.

A file is written under a temporary name and renamed. Its writer holds a lock on the temporary file until the rename, so
a temporary file without a lock is what a killed writer left, and the next write in the same folder removes it.

    .NAME.<16 hex digits>.tmp, locked      being written
    .NAME.<16 hex digits>.tmp, not locked  left behind: removed
    NAME                                   whole, the old content or the new

A run folder may come from a stranger, in an archive for instance. So every file of a run is opened by `open_untrusted`,
in every room, and a file that the user names by `open_named`; tests/test_opening.py holds it.

    what stands there        open_untrusted (a file of a run)    open_named (a file that the user names)
    a regular file           opened                              opened
    a link to one            refused: it may lead anywhere       opened: whoever names it knows it
    a pipe, socket, device   refused, without waiting            refused, without waiting
    a folder                 refused                             refused
    nothing                  FileNotFoundError                   FileNotFoundError

Not covered: a program that swaps files for links while they are read.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from harness.core.errors import StoreError


def write_atomically(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Replace `path` by `data`, whole or in pieces: the old file or the new one, never half; see `replacing`."""
    with replacing(path) as file:
        file.writelines((data,) if isinstance(data, bytes) else data)


_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
"""Names of temporary files."""

MAX_TEMPORARY_AGE_SECONDS = 3600.0
"""A temporary file counts as left behind after this time where the file system has no locks."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` when the block ends well; else `path` stays as it was.

    (Temporary file, fsync, rename, fsync of the folder.) Removes what killed writers left in the folder. Raises
    `StoreError` with the path and the free space when the disk refuses.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
        temporary, handle = _new_temporary(path)
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)  # before the file is closed: closing gives up the lock
            temporary = None
        sync_folder(path.parent)
    except OSError as error:
        raise disk_error(path, error) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _new_temporary(path: Path) -> tuple[Path, int]:
    """A temporary file for `path`, and its descriptor, which holds its lock. Raises `OSError`."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        # Who may read it is for the umask to say.
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with contextlib.suppress(OSError):  # without locks its age tells
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return temporary, handle
        os.close(handle)  # another writer removed it as left behind before it was locked


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove the temporary files that killed writers left in `folder`, as far as that is allowed. Returns them."""
    removed: list[Path] = []
    try:
        leftovers = [folder / name for name in os.listdir(folder) if _TEMPORARY.fullmatch(name)]  # noqa: PTH208 - half the time
    except OSError:  # a folder that may be written to and not listed
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
    """Whether the writer of a temporary file is gone."""
    state = os.fstat(descriptor)
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
"""Error numbers of a file system without room, for anybody or for this user."""


def disk_error(path: Path, error: OSError) -> StoreError:
    """The sentence for a write that the file system refused."""
    existing = path
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if isinstance(error, FileExistsError | NotADirectoryError):
        return StoreError(f"cannot write {path}: {existing} is no folder")
    try:
        free = f"{shutil.disk_usage(existing).free / 1e6:.0f} MB free"
    except OSError:
        free = "free space unknown"
    again = ". Make room and give the same command again: what is stored stays" if error.errno in FULL else ""
    return StoreError(f"cannot write {path}: {error.strerror or error} ({free} at {existing}){again}")


# ---- reading


READ_BUFFER_BYTES = 1024 * 1024

_KINDS = {
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFDIR: "folder",
}

LINK = "it is a symbolic link, and what belongs to a run is read only where it lies; copy the run folder with `cp -rL`"
"""Why a link in a run folder is refused, and what to do."""


def open_untrusted(path: Path) -> io.BufferedReader:
    """A file of a run, which a stranger may have made. Raises `OSError`, also for all that is no regular file."""
    return _open(path, os.O_NOFOLLOW)


def open_named(path: Path) -> io.BufferedReader:
    """A file that the user names, followed where it is a link. Raises `OSError` as `open_untrusted` does."""
    return _open(path, 0)


def read_named(path: Path, max_bytes: int) -> bytes:
    """At most `max_bytes` + 1 bytes of a file that the user names. Raises `OSError`."""
    with open_named(path) as file:
        return file.read(max_bytes + 1)


def read_at(descriptor: int, length: int, offset: int) -> bytes:
    """`length` bytes from `offset` on, fewer only at the end of the file. Raises `OSError`."""
    data = os.pread(descriptor, length, offset)
    if len(data) == length or not data:
        return data
    parts = [data]  # a read may give fewer bytes than there are
    while (missing := length - sum(map(len, parts))) and (
        data := os.pread(descriptor, missing, offset + length - missing)
    ):
        parts.append(data)
    return b"".join(parts)


def _open(path: Path, flags: int) -> io.BufferedReader:
    # Non-blocking means nothing for a regular file, and keeps a pipe without a writer from being waited for.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
    except OSError as error:
        if error.errno == errno.ELOOP and flags & os.O_NOFOLLOW:
            raise OSError(errno.ELOOP, LINK, str(path)) from error
        if error.errno == errno.ENXIO:
            raise _refusal(stat.S_IFSOCK, path) from error
        raise
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise _refusal(kind, path)
    raw = io.FileIO(str(path), opener=lambda _path, _flags: descriptor)  # by its path, for messages
    return io.BufferedReader(raw, READ_BUFFER_BYTES)


def _refusal(kind: int, path: Path) -> OSError:
    return OSError(errno.EINVAL, f"not a regular file but a {_KINDS.get(kind, 'thing of another kind')}", str(path))
