"""Writes that stay inside the run folder: a planted symbolic link, pipe or device is refused, never followed.

The run folder itself may be a link (results on another disk); nothing in it may. Files are read by
`harness.core.files`. Not covered: a writer who swaps folders for links while the run is under way.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from harness.core.errors import StoreError
from harness.core.files import disk_error


def make_folder(path: Path) -> None:
    """Make `path`, which must not be a link. Raises `StoreError`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            raise StoreError(
                f"{path} is a symbolic link; a run writes to no place outside its folder. Remove the link."
            )
    except OSError as error:
        raise disk_error(path, error) from error


def open_for_writing(path: Path, flags: int) -> int:
    """A descriptor of the regular file `path`, made when missing; a link is refused.

    Raises `StoreError` naming the path, for a link, a device, a pipe, a read-only or vanished folder.
    """
    try:
        # Non-blocking means nothing for a regular file, and saves us from a planted pipe.
        descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if path.is_symlink():
            raise StoreError(f"{path} is a symbolic link; a run never writes through one. Remove it.") from error
        raise disk_error(path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path} is not a regular file. Remove it.")
    return descriptor


def refuse_link(path: Path) -> None:
    """Raises `StoreError` when `path`, about to be replaced, is a symbolic link. Its folder: see `make_folder`."""
    if path.is_symlink():
        raise StoreError(f"{path} is a symbolic link; a run never writes through one. Remove it.")
