"""The only way to take a run folder for writing, regardless of what the previous process left in it.

What a killed process leaves behind at each stage, and how the next process handles it:

    the folder holds                                the next process
    nothing, or does not exist                      begins the run
    run.lock, log.jsonl                             begins it
    .manifest.json.….tmp, .questions.jsonl.….tmp    removes them, and begins it
    samples.jsonl without a byte                    begins it
    manifest.json                                   continues it
    .unfinished, but no manifest.json               starts the same import again; any other command is rejected
    samples, but no manifest.json                   is rejected: the settings of the samples are unknown
    files of other programs, and none of a run's    is rejected: the folder serves another purpose

Invariant: the first byte of a sample is written after manifest.json and questions.jsonl are on disk, so a start that
was killed never leaves samples without a manifest.json. `run`, each cell of a sweep, each shard and `merge` take
their folders here. Code that must know whether a run has begun calls `Manifest.find` and does not look for files
itself.

Only one process may write to a run, which is enforced by an operating-system lock on an open descriptor:

    run.lock is          the next process
    locked               is rejected, with the holder's host and process
    not locked           takes the run, regardless of the file's content
    on a file system without locks: takes the run with a warning

Invariant: the lock is released when its holder dies, for whatever reason; the content of run.lock only names the holder
in messages. `holder_of` briefly requests a shared lock, so a process that takes the run tries more than once. Not
covered: a process that is forked without an exec while its parent holds a run, and that outlives the parent.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.core import codec
from harness.core.errors import InUse
from harness.core.files import disk_errors
from harness.runs.layout import TRIES, TRY_SECONDS, Holder, RunFolder, RunLog, holder_of
from harness.runs.line_file import open_for_writing
from harness.runs.manifest import Manifest

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
"""Errors of `flock` on a file system that has no locks."""


@contextlib.contextmanager
def locked(folder: RunFolder) -> Iterator[str]:
    """Hold a run for the duration of the block: its folder is created if missing, and leftovers of interrupted writes
    are removed. Yields a warning if the file system has no working locks, else "".

    Raises an `InUse` that names the holder's host and process if it is taken, `StoreError` if the disk write fails.
    """
    folder.create()
    descriptor = open_for_writing(folder.lock, os.O_RDWR)
    try:
        with disk_errors(folder.lock):
            warning = _take(folder, descriptor)
            # Not before the lock is ours: until then the file names the holder, for processes that are rejected.
            os.ftruncate(descriptor, 0)
            started = datetime.now(UTC).isoformat(timespec="seconds")
            ours = Holder(host=socket.gethostname(), pid=os.getpid(), started=started)
            os.pwrite(descriptor, codec.encode(ours) + b"\n", 0)
            # Under the lock, so that no temporary file belongs to a live writer.
            folder.remove_temporaries()
        yield warning
    finally:
        with contextlib.suppress(OSError):
            # If the file were only closed, a copy in a forked child would keep the lock.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        # The file is kept, because removing it could give two processes the lock.
        os.close(descriptor)


def _take(folder: RunFolder, descriptor: int) -> str:
    """Lock the open file. Returns a warning if the file system has no locks, else "".

    Raises `InUse` if another process has the lock, `OSError` if that cannot be determined.
    """
    for _ in range(TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return ""
        except BlockingIOError:
            time.sleep(TRY_SECONDS)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return (
                f"{folder.path} is on a file system without working locks, so nothing prevents a second "
                "command from writing to it at the same time"
            )
    raise InUse(f"{folder.path} is in use by {holder_of(folder) or 'another process'}; a run can have only one writer.")


# ---- taking a run folder


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run folder held by this process alone. manifest: None before the run's first session.

    warning: a sentence about a file system without working locks, else empty.
    """

    log: RunLog
    manifest: Manifest | None
    warning: str


@contextlib.contextmanager
def hold(folder: RunFolder) -> Iterator[HeldRun]:
    """Take `folder` for the duration of the block, and create it if needed.

    Raises `StoreError` if the folder has only foreign files, has samples but no manifest, or is being written by
    another process, and if the disk write fails.
    """
    folder.refuse_foreign()
    with locked(folder) as warning, RunLog(folder) as log:
        yield HeldRun(log, Manifest.find(folder), warning)
