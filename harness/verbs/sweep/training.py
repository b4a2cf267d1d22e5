"""The checkpoints of a training run as the models of a sweep.

The checkpoints are the paths that match the patterns of the sweep's file. A training run often deletes its older
checkpoints, but their scores must stay in the tables. So the sweep's folder holds a record of all checkpoints that the
sweep has taken up, that is, that it found when it was started.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from harness.core import codec
from harness.core.errors import UsageError, option
from harness.core.files import read_record, write_atomically
from harness.core.inert import visible
from harness.core.records import SCHEMA_VERSION
from harness.runs.sweep_cell import JOIN
from harness.verbs.sweep.checkpoints import NO_STEP, Checkpoint, checkpoint_at
from harness.verbs.sweep.entry import Entry, slug
from harness.verbs.sweep.file import SweepFile

DELETED = "it was deleted before it was run"
"""The reason why a checkpoint is left out if the sweep has taken it up and it was deleted before it had a run."""

FILE = "checkpoints.json"
"""Name of the file in the sweep's folder that lists the checkpoints that the sweep has taken up."""

MAX_BYTES = 16 * 1024 * 1024
"""Largest size in bytes of a record that is read; a larger file is refused."""


class TakenUp(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpoints that a sweep has taken up. paths: pattern of the sweep's file → paths that have matched it."""

    paths: dict[str, list[str]]
    schema: int = SCHEMA_VERSION


def taken_up(out: Path) -> dict[str, list[str]]:
    """Pattern → paths of the checkpoints that the sweep in the folder `out` has taken up; empty before its first start.

    Raises `StoreError` for a damaged record.
    """
    remedy = "Remove it, and the tables list only checkpoints that still exist."
    record = read_record(out / FILE, TakenUp, MAX_BYTES, what="a record of checkpoints", remedy=remedy)
    return record.paths if record is not None else {}


def take_up(out: Path, checkpoints: Iterable[Checkpoint]) -> None:
    """Add checkpoints to the record in the sweep's folder `out`. Raises `StoreError`."""
    before = taken_up(out)
    by_pattern = {pattern: dict.fromkeys(paths) for pattern, paths in before.items()}
    for checkpoint in checkpoints:
        by_pattern.setdefault(checkpoint.pattern, {})[str(checkpoint.path)] = None
    after = {pattern: list(paths) for pattern, paths in by_pattern.items()}
    if after != before:
        write_atomically(out / FILE, codec.pretty(TakenUp(paths=after)))


def present(file: SweepFile) -> dict[Path, Checkpoint | None]:
    """Path that a checkpoint pattern matches now → its checkpoint, None if it shows no step; empty if nothing matches
    yet.
    """
    return {path: checkpoint_at(path, pattern) for pattern in _patterns(file) for path in _matches(pattern)}


def _patterns(file: SweepFile) -> Sequence[str]:
    """The checkpoint patterns of the file, which holds a list of them or a single text; empty if it has none."""
    patterns = file.content.get("checkpoints", [])
    return [patterns] if isinstance(patterns, str) else patterns


def _matches(pattern: str) -> list[Path]:
    """The paths that match a pattern, sorted."""
    anchor = Path(pattern).anchor
    # `Path.glob` takes no absolute pattern.
    return sorted(Path(anchor or ".").glob(pattern[len(anchor) :]))


def _deleted_checkpoints(file: SweepFile, out: Path) -> list[tuple[str, Path]]:
    """The pattern and the path of each checkpoint that the sweep in the folder `out` has taken up and that no longer
    exists.
    """
    earlier = taken_up(out) if "checkpoints" in file.content else {}
    paths = [(pattern, Path(name)) for pattern in _patterns(file) for name in earlier.get(pattern, ())]
    return [(pattern, path) for pattern, path in paths if not path.exists()]


def has_run(out: Path, path: Path) -> bool:
    """Whether the sweep's folder `out` has a run of the checkpoint at `path`."""
    checkpoint = checkpoint_at(path)
    return checkpoint is not None and any(out.glob(f"{slug(checkpoint.name)}{JOIN}*/manifest.json"))


def left_out(file: SweepFile, out: Path) -> dict[Path, str]:
    """Path that matches a pattern of checkpoints now or did before, but is no checkpoint of the sweep → the reason."""
    without_step = {path: NO_STEP for path, checkpoint in present(file).items() if checkpoint is None}
    deleted = [path for pattern, path in _deleted_checkpoints(file, out) if checkpoint_at(path, pattern) is not None]
    return without_step | {path: DELETED for path in deleted if not has_run(out, path)}


def _entry(file: SweepFile, pattern: str, path: Path) -> Entry | None:
    """The entry of the checkpoint at `path`; None if the path does not show a training step."""
    checkpoint = checkpoint_at(path, pattern)
    if checkpoint is None:
        return None
    return Entry(
        name=slug(checkpoint.name),
        label=checkpoint.name,
        where=_where(file, pattern),
        options={"model": str(path)},
        checkpoint=checkpoint,
    )


def _where(file: SweepFile, pattern: str) -> str:
    """The file and line of a pattern of checkpoints."""
    return file.where(("checkpoints", [*_patterns(file)].index(pattern)))


def entries(file: SweepFile, out: Path) -> list[Entry]:
    """An entry for each checkpoint that the patterns match, ordered by series and step.

    A checkpoint that matched at an earlier start of the sweep and was deleted after it was run has an entry, too.
    Raises `UsageError` if a pattern has no checkpoint, or two checkpoints have the same step or name.
    """
    deleted = [(pattern, path) for pattern, path in _deleted_checkpoints(file, out) if has_run(out, path)]
    runs = [(pattern, entry) for pattern, path in deleted if (entry := _entry(file, pattern, path)) is not None]
    by_step: dict[tuple[str, int], Entry] = {}
    for pattern in _patterns(file):
        matches = _matches(pattern)
        existing = [entry for path in matches if (entry := _entry(file, pattern, path)) is not None]
        if not existing and pattern not in dict(runs):
            raise _no_checkpoint(file, pattern, matches)
        for entry in existing:
            earlier = by_step.setdefault(_place(entry), entry)
            if earlier.options != entry.options:
                both = " and ".join(visible(twin.options["model"], 200) for twin in (earlier, entry))
                training = visible(_place(entry)[0], 100) or "the training"
                raise UsageError(
                    f"{entry.where}: {both} are both step {_place(entry)[1]} of {training}: narrow the pattern, or "
                    "rename one"
                )
    if len({entry.name for entry in by_step.values()}) < len(by_step):
        raise UsageError(
            f"{file.where(('checkpoints',))}: two checkpoints have the same name: rename one of their folders"
        )
    # A checkpoint that exists replaces a deleted checkpoint with the same step or name.
    names = {entry.name for entry in by_step.values()}
    for _, entry in runs:
        if entry.name not in names:
            by_step.setdefault(_place(entry), entry)
    return [by_step[key] for key in sorted(by_step)]


def _place(entry: Entry) -> tuple[str, int]:
    """The series and the step of a checkpoint's entry."""
    assert entry.checkpoint is not None
    return entry.checkpoint.series, entry.checkpoint.step


def _no_checkpoint(file: SweepFile, pattern: str, matches: Sequence[Path]) -> UsageError:
    """The error for a pattern without a checkpoint. matches: the paths that match it, all without a step."""
    where, shown = _where(file, pattern), visible(pattern, 200)
    if not matches:
        return UsageError(
            f"{where}: no file or folder fits {shown}, seen from {Path.cwd()}; correct the pattern. If the training "
            f"has written no checkpoint yet, {option('follow', 60)} checks the file and waits for one"
        )
    return UsageError(f"{where}: no checkpoint fits {shown}. {visible(str(matches[0]), 200)}: {NO_STEP}")
