"""Files opened for reading: what may have been planted is refused, and nobody is waited for.

    what stands there        open_untrusted (a file of a run)    open_named (a file that the user names)
    a regular file           opened                              opened
    a link to one            refused: it may lead anywhere       opened: whoever names it knows it
    a pipe, socket, device   refused, without waiting            refused, without waiting
    a folder                 refused                             refused
    nothing                  FileNotFoundError                   FileNotFoundError

A run folder may come from a stranger, in an archive for instance. So every file of a run is opened by `open_untrusted`,
in every room, and a file that the user names by `open_named`; tests/test_opening.py holds it. Not covered: a program
that swaps files for links while they are read.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

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
