"""Reads a run's state from its files, without a progress record: its writer, stored samples, and how it ended."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.benchmarks.shards import Shard, assign_parts
from harness.core import codec
from harness.core.files import open_untrusted, read_at
from harness.runs import questions
from harness.runs.journal import stored_keys
from harness.runs.layout import Holder, RunFolder, holder_of
from harness.runs.manifest import Manifest

LOG_BYTES = 4 * 1024 * 1024
"""Number of bytes at the end of the log that are searched for the start and end of the last session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Stored and planned sample counts for one benchmark."""

    name: str
    """Name of the benchmark."""
    done: int
    """Number of samples on disk."""
    total: int
    """Number of planned samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDisk:
    """A run's state on disk."""

    model: str
    """Name of the model."""
    benchmarks: tuple[Stored, ...]
    """Samples by benchmark."""
    holder: Holder | None
    """The process that is writing to the run; None if there is none."""
    session: tuple[dict[str, Any], ...]
    """The last session's `session_started` and `session_ended` log entries, if found near the end of the log."""


def on_disk(folder: RunFolder) -> OnDisk:
    """Read a run's progress and its current writer from its files, changing nothing. Raises `StoreError`."""
    manifest = Manifest.load(folder)
    holder = holder_of(folder)
    return OnDisk(
        model=manifest.model,
        benchmarks=tuple(_count_stored(folder, manifest, name) for name in manifest.benchmarks),
        holder=holder,
        session=_last_session(folder),
    )


def _count_stored(folder: RunFolder, manifest: Manifest, name: str) -> Stored:
    """Count the stored and the planned samples of one benchmark."""
    files, record = folder.benchmark(name), manifest.benchmarks[name]
    plan = record.plan
    ids = [question.question_id for question in questions.read_planned(files, record)]
    keys = stored_keys(files)
    if folder.part is not None and (run := folder.run_of_shard()) is not None:
        # The plan is the run's, and a shard requests nothing that the run already has.
        with contextlib.suppress(ValueError):  # a folder with a name like 9-of-8
            shard = Shard.parse(folder.part)
            ids = [each for each, part in assign_parts(name, ids, shard.of).items() if part == shard.number]
        for key in stored_keys(run.benchmark(name)):
            keys.add(key)
    return Stored(name=name, done=plan.n_stored(keys, ids), total=plan.total(ids))


def _last_session(folder: RunFolder) -> tuple[dict[str, Any], ...]:
    """The log entries of the last session: its start and, if it ended normally, its end.

    The start is missing if it is not within the last `LOG_BYTES` of the log.
    """
    events: list[dict[str, Any]] = []
    for line in _end_of(folder.log):
        if b'"session_started"' in line or b'"session_ended"' in line:
            # The first line may be cut off, and a crash may have left half a line at the end.
            with contextlib.suppress(codec.DecodeError):
                event = codec.decode(line, dict[str, Any])
                if event.get("event") == "session_started":
                    events = [event]  # the entries so far belong to an earlier session
                elif event.get("event") == "session_ended":
                    events.append(event)
    return tuple(events[:2])  # any more are ends of later sessions whose start is a broken line


def _end_of(path: Path) -> list[bytes]:
    """The last lines of a file; the first of them may be incomplete. Empty if the file cannot be read."""
    try:
        with open_untrusted(path) as file:
            size = os.fstat(file.fileno()).st_size
            return read_at(file.fileno(), LOG_BYTES, max(0, size - LOG_BYTES)).splitlines()
    except OSError:
        return []
