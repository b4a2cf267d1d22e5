"""Folders and files that nobody else could have written.

The files in the state folder name processes to end. So the folder and each file in it must belong to this user, be no
link, and be writable for nobody else; a file has one name. The folders above need no check: whoever could change them
could only put there what fails this one.

Guarantees: nothing is opened, written or emptied through a link, or through a second name of somebody's file.
Not covered: access lists (ACLs), and a file that its user put there (an unpacked archive).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from server_launchers.errors import LaunchError


def make_folder(folder: Path) -> None:
    """Create `folder` and missing folders above it for this user alone.

    Raises LaunchError where others could have put files there.
    """
    missing = [folder, *(above for above in folder.parents if not above.exists())]
    try:
        # Folders are made one by one from the top down: `mkdir(parents=True)` would give the upper ones the default
        # mode.
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
        doubt = _doubt(folder)
    except OSError as error:
        raise LaunchError(
            f"cannot keep server state in {folder}: {error.strerror}; set HARNESS_STATE to another folder"
        ) from None
    if doubt is not None:
        raise LaunchError(f"{doubt}, so the state in {folder} cannot be trusted; set HARNESS_STATE to another folder")


def read(path: Path, limit: int) -> bytes | None:
    """The first `limit` bytes of a file of ours; None for a missing file, a link, a pipe, or somebody else's file."""
    return _read(path, limit, from_end=False)


def read_end(path: Path, limit: int) -> bytes | None:
    """The last `limit` bytes of a file of ours; None for a missing file, a link, a pipe, or somebody else's file."""
    return _read(path, limit, from_end=True)


def _read(path: Path, limit: int, *, from_end: bool) -> bytes | None:
    """The last (`from_end`) or first `limit` bytes of a file; None if it is not ours or cannot be read."""
    try:
        # NONBLOCK: opening a pipe that somebody put there would wait for ever. The open file is checked, not its path,
        # which could name another file a moment later.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not _is_ours(status):
                return None
            if from_end:
                file.seek(max(0, status.st_size - limit))
            return file.read(limit)
    except OSError:
        return None


def create(path: Path) -> int:
    """A descriptor of a new, empty file at `path`, for appending.

    An older file of that name stays unchanged but loses the name.
    """
    # Unlinked, not truncated: the name may be a hard link to somebody's file.
    path.unlink(missing_ok=True)
    # O_EXCL refuses a link that appears between the two lines.
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def replace(path: Path, data: bytes) -> None:
    """Put `data` at `path` in one step: a reader sees the old content or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    with os.fdopen(create(temporary), "wb") as file:
        file.write(data)
    temporary.replace(path)


def open_for_lock(path: Path) -> int:
    """A descriptor for locking; a missing file is created, and existing content stays."""
    try:
        # No O_TRUNC or O_EXCL: other starts hold this very file locked.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LaunchError(f"cannot open the lock {path}: {error.strerror}; remove it if it is a link") from None
    if not _is_ours(os.fstat(descriptor)):
        os.close(descriptor)
        raise LaunchError(f"the lock {path} is no plain file of this user: remove it")
    return descriptor


def _is_ours(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and _is_private(status)


def _is_private(status: os.stat_result) -> bool:
    """Whether what has this status is ours, and nobody else may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _doubt(folder: Path) -> str | None:
    """The reason why others could have changed what is in `folder`, in words; None if they could not."""
    status = folder.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"{folder} is a link"
    if status.st_uid != os.geteuid():
        return f"{folder} belongs to the user with the number {status.st_uid}"
    if not _is_private(status):
        return f"{folder} can be changed by others (mode {stat.S_IMODE(status.st_mode):o}; chmod 700 forbids that)"
    return None
