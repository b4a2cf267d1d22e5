"""Whole-file writes that are never half done.

A file is written under a temporary name and renamed. Its writer holds a lock on the temporary file until the rename, so
a temporary file without a lock is what a killed writer left, and the next write in the same folder removes it.

    .NAME.<16 hex digits>.tmp, locked      being written
    .NAME.<16 hex digits>.tmp, not locked  left behind: removed
    NAME                                   whole, the old content or the new
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
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
