"""Folders and files that nobody else could have written. Standard library only: the guard imports it.

The files in the state folder name processes to end, so each step of the path to them is checked, as sshd checks the
path to authorized_keys:

    step                       may belong to             may be changed by
    a folder above             root, ourselves           its owner; everybody where it is sticky, as /tmp is
    a link on the way          root, ourselves           (its folder's rule holds)
    the folder itself          ourselves                 its owner
    a file in it               ourselves                 its owner; it has one name, and is no link

A group that has only the owner as a member, and root's group, count as the owner. In a user namespace that root is not
mapped into, the number of "nobody" stands for root: there root cannot be told from other strangers.

Guarantees: nothing is opened, written or emptied through a link, or through a second name of somebody's file.
Not covered: access lists (ACLs), and a file that its user put there (an unpacked archive).
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from server_launchers.errors import LaunchError

MAX_LINKS = 40
"""Most symbolic links on the way to a folder, as in the kernel."""

_CHANGES = stat.S_IWGRP | stat.S_IWOTH
_ALL_NUMBERS = 2**32 - 1
"""Number of users that the initial user namespace maps; any other namespace maps fewer."""


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
    plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    return plain and status.st_uid == os.geteuid() and not _changed_by_others(status)


def _doubt(folder: Path) -> str | None:
    """The reason why others could have changed what is in `folder`, in words; None if they could not."""
    status = folder.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"{folder} is a link"
    if status.st_uid != os.geteuid():
        return f"{folder} belongs to the user with the number {status.st_uid}"
    if _changed_by_others(status):
        return f"{folder} can be changed by others (mode {stat.S_IMODE(status.st_mode):o}; chmod 700 forbids that)"
    for step in _way(folder):
        status = step.lstat()
        if status.st_uid not in {os.geteuid(), *_roots()}:
            return f"{step} belongs to the user with the number {status.st_uid}"
        # A link's own mode is always 777 on Linux; who may replace it is decided by its folder.
        sticky = stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX
        if not sticky and _changed_by_others(status):
            return f"{step} can be changed by others (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def _way(folder: Path) -> Iterator[Path]:
    """Every folder and link that the system passes on its way to `folder`, without `folder` itself."""
    # `Path.resolve` would show only the end of the way, not the links on it, which an attacker would change.
    step = Path("/")
    parts_left = list(folder.absolute().parts[1:-1])
    links = 0
    yield step
    while parts_left:
        part = parts_left.pop(0)
        step = step.parent if part == ".." else step / part
        yield step
        if step.is_symlink():
            links += 1
            if links > MAX_LINKS:
                raise OSError(0, "too many links on the way")
            target = step.readlink()
            step = Path("/") if target.is_absolute() else step.parent
            # The target's parts are walked like the rest: the target may pass through links itself.
            parts_left = [*(part for part in target.parts if part != "/"), *parts_left]


def _changed_by_others(status: os.stat_result) -> bool:
    """Whether other users may write to the file or folder with this status."""
    others = status.st_mode & _CHANGES
    return bool(others) and not (others == stat.S_IWGRP and _is_private(status.st_gid))


@cache
def _is_private(group: int) -> bool:
    """Whether nobody else is in this group: root's, or the group that has our name and no other member."""
    if group == 0:
        return True
    with contextlib.suppress(KeyError):
        # Distributions give each user a group of the same name, and a umask of 002 that is harmless with it.
        user, entry = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
        return entry.gr_name == user and set(entry.gr_mem) <= {user}
    return False


@cache
def _roots() -> frozenset[int]:
    """The user numbers that stand for root: 0, and in a user namespace that does not map all users also `nobody`'s."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        rows = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
        if sum(int(row[2]) for row in rows) < _ALL_NUMBERS:
            return frozenset({0, int(Path("/proc/sys/kernel/overflowuid").read_text())})
    return frozenset({0})
