"""The one way to take a run folder for writing, whatever the process before left in it.

What a process that was killed leaves, step by step, and what the next one makes of it:

    the folder holds                                the next process
    nothing, or is not there                        begins the run
    run.lock, log.jsonl                             begins it
    .manifest.json.….tmp, .questions.jsonl.….tmp    removes them, and begins it
    samples.jsonl without a byte                    begins it
    manifest.json                                   goes on with it
    samples, and no manifest.json                   refuses: nothing says under which settings they were made
    files of other programs, and none of a run's    refuses: the folder is there for other things

Invariant: the first byte of a sample is written after manifest.json and questions.jsonl are on disk, so a start that
was killed never leaves samples without a manifest.json. `run`, `race`, each cell of a sweep, each shard and `merge`
take their folders here. Code that must know whether a run has begun calls `Manifest.find`, and looks for no
file itself.

One writer a run, by an operating-system lock on an open descriptor:

    run.lock is          the next process
    locked               is refused, with the holder's host and process
    not locked           takes the run, whatever the file says
    on a file system that has no locks: takes the run with a warning

Invariant: the lock dies with its holder, whatever kills it; the content of run.lock only names the holder for messages,
and decides nothing. `holder_of` asks for a shared lock for a moment, so a process that takes the run tries more than
once. Not covered: a process that is forked without an exec while its parent holds a run, and outlives it.
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
    """Hold a run for the length of the block: its folder is made if it is missing, and freed of what interrupted writes
    left in it. The block gets a warning if the file system has no working locks, else "".

    Raises `InUse` naming the holder's host and process when it is taken, `StoreError` when the disk refuses.
    """
    folder.create()
    descriptor = open_for_writing(folder.lock, os.O_RDWR)
    try:
        with disk_errors(folder.lock):
            warning = _take(folder, descriptor)
            # Not before the lock is ours: until then the file names the holder, for whoever is refused.
            os.ftruncate(descriptor, 0)
            started = datetime.now(UTC).isoformat(timespec="seconds")
            ours = Holder(host=socket.gethostname(), pid=os.getpid(), started=started)
            os.pwrite(descriptor, codec.encode(ours) + b"\n", 0)
            # Under the lock, so no temporary file belongs to a living writer.
            folder.remove_temporaries()
        yield warning
    finally:
        with contextlib.suppress(OSError):
            # Closing alone would leave the lock to a copy in a forked child.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        # The file stays, because removing it could give two processes the lock.
        os.close(descriptor)


def _take(folder: RunFolder, descriptor: int) -> str:
    """Lock the open file. Returns a warning if the file system has no locks, else "".

    Raises `InUse` if another process has the lock, `OSError` if that cannot be told.
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
    """A run folder that only this process writes to. manifest: None before the run's first session.

    warning: about a file system without working locks, else empty.
    """

    log: RunLog
    manifest: Manifest | None
    warning: str


@contextlib.contextmanager
def hold(folder: RunFolder) -> Iterator[HeldRun]:
    """Take `folder` for the length of the block, and create it if needed.

    Raises `StoreError` for a folder with other things, or with samples but no manifest, for one that another process
    writes to, and when the disk refuses.
    """
    folder.refuse_foreign()
    with locked(folder) as warning, RunLog(folder) as log:
        yield HeldRun(log, Manifest.find(folder), warning)
