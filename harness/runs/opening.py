"""The one way to take a run folder for writing, whatever the process before left in it.

What a process that was killed leaves, step by step, and what the next one makes of it:

    the folder holds                                the next process
    nothing, or is not there                        begins the run
    run.lock, log.jsonl                             begins it
    .manifest.json.….tmp, .questions.jsonl.….tmp    removes them, and begins it
    samples.jsonl without a byte, samples.index     begins it
    manifest.json                                   goes on with it
    samples, and no manifest.json                   refuses: nothing says under which settings they were made
    files of other programs, and none of a run's    refuses: the folder is there for other things

Invariant: the first byte of a sample is written after manifest.json and questions.jsonl are on disk, so a start that
was killed never leaves the state before the last. `run`, `race`, `repeats`, each cell of a sweep, each shard and
`merge` take their folders here; who asks whether a run has begun asks `Manifest.find`, and looks for no file by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from harness.runs.layout import RunFolder
from harness.runs.lock import RunLock
from harness.runs.log import RunLog
from harness.runs.manifest import Manifest


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run folder that this process alone writes to. manifest: None before the run's first session.

    warning: about a file system without working locks, else empty.
    """

    folder: RunFolder
    log: RunLog
    manifest: Manifest | None
    warning: str


@contextmanager
def held(folder: RunFolder, *, break_lock: bool = False) -> Iterator[HeldRun]:
    """Take `folder` for the length of the block, making it if need be. break_lock: see `RunLock`.

    Raises `StoreError` for a folder that holds other things, or samples without a manifest, that another process
    writes to, or that the disk refuses.
    """
    folder.refuse_foreign()
    with RunLock(folder, break_lock=break_lock) as lock, RunLog(folder) as log:
        yield HeldRun(folder, log, Manifest.find(folder), lock.warning or "")
