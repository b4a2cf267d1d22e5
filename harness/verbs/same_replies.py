"""Whether one run repeats the replies of another: the warning of a comparison, and the remark on a step of a training.

Equal replies are counted in the stored texts, because no setting shows them: a run may repeat another one after a
change of settings that has no effect, and a server that ignores seeds repeats nothing at equal settings.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import StoreError, option
from harness.reports.series import step_text
from harness.runs import Manifest, suite_file
from harness.runs.layout import BenchmarkFolder, RunFolder
from harness.runs.manifest import BenchmarkRecord
from harness.scoring.shared_replies import SharedReplies, shared_replies
from harness.viewer.offsets import SampleOffsets, sample_pairs

MAX_REPLIES = 2_000
"""Largest number of pairs of replies that a comparison reads; if there are more, this many are drawn at random."""

ADVICE = (
    ". Perhaps one model made both: check that the `command` of the server holds {model}, that the server loads the "
    "weights of each checkpoint, and that the two checkpoints differ. For new scores, delete the run folder of the "
    "wrong step and give the same command"
)
"""The end of the sentence on a step that repeats the step before."""

MAX_STEP_REPLIES = 200
"""Largest number of pairs of replies that are read for a remark on a step. Every step of a training is looked at each
time its tables are written, and a step that repeats another one does so in most replies.
"""


def warnings(
    folders: tuple[BenchmarkFolder, BenchmarkFolder],
    records: tuple[BenchmarkRecord, BenchmarkRecord],
    ids: Sequence[str],
) -> list[str]:
    """One warning if more replies of two runs are equal than independent samples would be; else none.

    folders, records: of the run and of the baseline. ids: of the shared questions. Replies that are not stored, as
    those of another tool's outputs, are not compared.
    """
    mine, theirs = (record.identity for record in records)
    shared = _equal_replies(folders, records, ids, MAX_REPLIES)
    if not shared.many:
        return []
    if _greedy(records):
        why = (
            "At temperature 0 a reply repeats itself, whatever the run seed: where replies are equal, the settings "
            "that differ have no effect, and the second run is no further evidence"
        )
    elif mine.get("seed") is not None and mine.get("seed") == theirs.get("seed"):
        why = (
            f"Both runs have the run seed {mine['seed']}, so one run is a copy of the other as far as their settings "
            f"agree, and no further evidence: sample one of the two again with another {option('seed')}"
        )
    else:
        why = (
            "The server ignores seeds or answers from a cache, or one run took over the samples of the other: the "
            "second run is no further evidence"
        )
    return [f"{shared.sentence}. {why}"]


def remarks(folder: RunFolder) -> list[str]:
    """A sentence if the run is a step of a training and repeats most replies of the step before; else none.

    Other weights seldom give the same replies, even with the same seeds, so the server probably had not loaded them.
    """
    with contextlib.suppress(StoreError, OSError):
        note = suite_file.read(folder)
        before = RunFolder(folder.path.parent / Path(note.before).name)
        if note.step is None or not note.before or not before.manifest.is_file():
            return []
        pairs = (Manifest.load(folder).benchmarks, Manifest.load(before).benchmarks)
        for name in pairs[0].keys() & pairs[1].keys():
            folders = folder.benchmark(name), before.benchmark(name)
            shared = _equal_replies(folders, (pairs[0][name], pairs[1][name]), None, MAX_STEP_REPLIES)
            if shared.many and shared.most:
                step, former = (step_text(item) for item in (note.step, suite_file.read(before).step or 0))
                return [f"step {step} repeats step {former}: {shared.sentence}{ADVICE}"]
    return []


def _greedy(records: tuple[BenchmarkRecord, BenchmarkRecord]) -> bool:
    """Whether both runs ask for the likeliest tokens."""
    return all(_temperature(record.identity) == 0 for record in records)


def _temperature(identity: Mapping[str, Any]) -> object:
    """The temperature of an identity; None if it records none."""
    sampling = identity.get("sampling")
    return sampling.get("temperature") if isinstance(sampling, dict) else None


def _equal_replies(
    folders: tuple[BenchmarkFolder, BenchmarkFolder],
    records: tuple[BenchmarkRecord, BenchmarkRecord],
    ids: Sequence[str] | None,
    most: int,
) -> SharedReplies:
    """The equal replies of two runs. ids: of the questions; None: all. most: as in `sample_pairs`."""
    sides = SampleOffsets(folders[0]), SampleOffsets(folders[1])
    for side in sides:
        side.refresh()
    pairs = sample_pairs(sides, sides[0].questions() if ids is None else ids, most)
    return shared_replies(pairs, greedy=_greedy(records))
