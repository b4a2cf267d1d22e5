"""The checkpoints of a training run as the models of a sweep.

The checkpoints are the paths that match the patterns of the sweep's file. A training run often deletes its older
checkpoints, but their scores must stay in the tables. So the sweep's folder holds a record of all checkpoints that the
sweep has taken up, that is, that it found when it was started.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from harness.core import codec
from harness.core.errors import UsageError, option
from harness.core.files import read_record, write_atomically
from harness.core.inert import visible
from harness.core.records import SCHEMA_VERSION
from harness.runs.sweep_cell import JOIN
from harness.verbs.sweep.checkpoints import Checkpoint, checkpoint_at, why_no_step
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


def patterns_without_match(file: SweepFile, out: Path) -> list[str]:
    """The patterns of the file that match nothing, and matched nothing that the sweep in the folder `out` has run."""
    with_run = {pattern for pattern, path in _deleted_checkpoints(file, out) if has_run(out, path)}
    return [pattern for pattern in _patterns(file) if pattern not in with_run and not _matches(pattern)]


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
    without_step = {path: why_no_step(path) for path, checkpoint in present(file).items() if checkpoint is None}
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


def entries(file: SweepFile, out: Path, *, as_they_come: bool = False) -> list[Entry]:
    """An entry for each checkpoint that the patterns match, ordered by series and step.

    A checkpoint that matched at an earlier start of the sweep and was deleted after it was run has an entry, too.
    Twins are two checkpoints with the same step of a training, or the same name. as_they_come: further checkpoints may
    come, so leave out the twins that `left_out_twins` names, and let a pattern have no checkpoint yet if another has
    one; else both raise `UsageError`.
    """
    deleted = [(pattern, path) for pattern, path in _deleted_checkpoints(file, out) if has_run(out, path)]
    runs = [(pattern, entry) for pattern, path in deleted if (entry := _entry(file, pattern, path)) is not None]
    without = [
        pattern
        for pattern in _patterns(file)
        if pattern not in dict(runs) and not any(_entry(file, pattern, path) for path in _matches(pattern))
    ]
    if without and (not as_they_come or len(without) == len(_patterns(file))):
        raise _no_checkpoint(file, without[0], _matches(without[0]))
    if not as_they_come:
        refuse_twins(file)
    existing = _existing(file)
    for path in left_out_twins(file, out):
        del existing[path]
    by_step = {_place(entry): entry for entry in existing.values()}
    # A checkpoint that exists replaces a deleted checkpoint with the same step or name.
    names = {entry.name for entry in by_step.values()}
    for _, entry in runs:
        if entry.name not in names:
            by_step.setdefault(_place(entry), entry)
    return [by_step[key] for key in sorted(by_step)]


def _existing(file: SweepFile) -> dict[Path, Entry]:
    """Path → entry of each checkpoint that the patterns match now; the first pattern that matches a path counts."""
    existing: dict[Path, Entry] = {}
    for pattern in _patterns(file):
        for path in _matches(pattern):
            if path not in existing and (entry := _entry(file, pattern, path)) is not None:
                existing[path] = entry
    return existing


def _twins(file: SweepFile) -> Iterator[tuple[Entry, Entry, str]]:
    """Yield pairs of checkpoints that cannot both be models of the sweep, the first of several in each pair, and what
    the two share, in words.
    """
    by_step: dict[tuple[str, int], Entry] = {}
    by_name: dict[str, Entry] = {}
    for entry in _existing(file).values():
        if (first := by_step.setdefault(_place(entry), entry)) is not entry:
            yield first, entry, f"step {_place(entry)[1]} of {visible(_place(entry)[0], 100) or 'the training'}"
        if (first := by_name.setdefault(entry.name, entry)) is not entry:
            yield first, entry, f"called {visible(entry.name, 100)}"


def refuse_twins(file: SweepFile) -> None:
    """Raise `UsageError` if two checkpoints have the same step of a training, or the same name."""
    for first, second, shared in _twins(file):
        both = f"{visible(first.options['model'], 200)} and {visible(second.options['model'], 200)}"
        raise UsageError(f"{second.where}: {both} are both {shared}: narrow the pattern, or rename one")


def left_out_twins(file: SweepFile, out: Path) -> dict[Path, str]:
    """Path of each checkpoint that a sweep leaves out because of a twin → the reason.

    Of two twins, the one that the sweep in the folder `out` has run stays. Both are left out if it has run neither.
    """
    taken = {name for names in taken_up(out).values() for name in names}
    reasons: dict[Path, str] = {}
    for first, second, shared in _twins(file):
        pair = [Path(entry.options["model"]) for entry in (first, second)]
        run = [path for path in pair if str(path) in taken and has_run(out, path)]
        for path, twin in (pair, pair[::-1]):
            if run != [path]:
                state = "has a run" if run == [twin] else "has no run either" if not run else "has a run, too"
                why = f"{visible(str(twin), 200)} is {shared}, too, and {state}: rename one, or move it elsewhere"
                reasons.setdefault(path, why)
    return reasons


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
    return UsageError(
        f"{where}: no checkpoint fits {shown}. {visible(str(matches[0]), 200)}: {why_no_step(matches[0])}"
    )
