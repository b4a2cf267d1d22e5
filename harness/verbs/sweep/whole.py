"""A whole sweep: `plan_of` makes the plan from the file, `carry_out` runs it and writes the tables.

The command line and Python both call these two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.asking.options import JudgeOptions
from harness.asking.options.verbs import SweepOptions
from harness.asking.options.whom import SERVED
from harness.asking.watching import Watcher
from harness.core.errors import Sentence, UsageError, option
from harness.core.inert import visible
from harness.core.nouns import are, count_noun
from harness.verbs.judge import try_judge
from harness.verbs.score import destinations_of, trackers_named
from harness.verbs.sweep import (
    cells,
    following,
    overwritten,
    records,
    run_notes,
    running,
    shared_servers,
    table,
    training,
)
from harness.verbs.sweep import file as files
from harness.verbs.sweep.cells import ServerGroup, Sweep
from harness.verbs.sweep.checkpoints import in_different_words
from harness.verbs.sweep.results import CellResult, Results, results
from harness.verbs.sweep.scorer import score_cell

SideBySide = Callable[[Sequence[ServerGroup]], None]
"""Carries out the groups of a sweep, as many at the same time as the sweep has slots; returns when all have ended.

A group: the cells that share one server. A slot: the devices of one of the servers that run at the same time.
"""


def plan_of(
    name: str,
    given: Mapping[str, Any],
    judge: Mapping[str, Any],
    k: int | None = None,
    track: Sequence[str] = (),
    *,
    before_checkpoints: bool = False,
    as_they_come: bool = False,
    content: dict[str, Any] | None = None,
) -> Sweep:
    """The plan of a sweep's file, or of a suite.

    name: path of the file, or name of a suite. given: options of a run that override the file's, `serve` among them.
    judge: options of a judge that override the file's. In `given` and `judge`, an option that is None stays as the file
    has it, except a seed. k: of pass@k in the tables, in place of the file's. track: names of the trackers that get
    each cell's scores. before_checkpoints: plan with a made-up checkpoint, to check everything else before the first
    checkpoint exists. as_they_come: as in `cells.plan`. content: what the file held when another process made its plan;
    None: the file is read. Raises `UsageError` with file and line, or with the option.
    """
    over = SweepOptions.without_unset(given)
    try:
        serve = SERVED.parse(over.pop("serve", None))
    except ValueError as error:
        raise UsageError(str(error), field="serve") from error
    path = files.find(name)
    file = files.read(path) if content is None else files.with_content(path, content)
    if before_checkpoints:
        file = cells.before_checkpoints(file)
    as_they_come = as_they_come or before_checkpoints
    sweep = cells.plan(file, over, serve, JudgeOptions.without_unset(judge), as_they_come=as_they_come)
    shared_servers.refuse_one_port(sweep)
    trackers_named(track)  # An unknown name is refused now, not after the first cell.
    sweep = replace(sweep, track=destinations_of(track))
    return sweep if k is None else replace(sweep, table=sweep.table.model_copy(update={"k": k}))


@dataclass(frozen=True, kw_only=True)
class EndedSweep:
    """A finished sweep. written: the files of the tables."""

    results: Results
    written: Sequence[Path]

    @property
    def lost(self) -> list[CellResult]:
        """The cells that failed, miss samples or cannot be read."""
        return [result for result in self.results.results if result.reason]

    @property
    def disagreeing(self) -> list[CellResult]:
        """The cells whose score does not agree with published scores of their model."""
        return [result for result in self.results.results if result.standing == "not compatible"]


def carry_out(
    sweep: Sweep,
    watcher: Watcher,
    on_cell: running.OnCell = lambda _record: None,
    side_by_side: SideBySide | None = None,
    score: running.Scorer = score_cell,
) -> EndedSweep:
    """Run and score the cells of a sweep that are not done, let the judge rule, and write the tables.

    side_by_side: carries out groups at the same time if there are several groups and slots; None: one server runs after
    the other, on the devices of the first slot. Raises `Interrupted`, KeyboardInterrupt, `StoreError` if another
    process holds the folder, and what `try_judge` raises; every other failure is recorded with its cell.
    """
    with running.hold_folder(sweep):
        _warn_left_out(sweep.left_out, watcher)
        for words in [*in_different_words(sweep.checkpoints), *shared_servers.without_model(sweep)]:
            watcher.warn(Sentence(words))
        if sweep.awaited_base is not None:
            watcher.warn(_base_to_come(sweep, sweep.awaited_base))
        if sweep.checkpoints:
            training.take_up(sweep.out, sweep.checkpoints)
        for path, reason in running.reasons_to_wait(sweep).items():
            watcher.warn(Sentence(f"{visible(str(path), 200)} is not run now: {reason}"))
        groups = running.owing(sweep)
        to_load = (sweep.checkpoint_path(group.cells[0]) for group in groups if group.spec is not None)
        following.warn_of_fresh((path for path in to_load if path is not None), watcher)
        before = _send_times(sweep)
        for sentence in _new_tracker_runs(sweep, before) if groups else ():
            watcher.standing(sentence)
        if sweep.judge is not None and groups:
            try_judge(sweep.judge, watcher, may_start=any(group.spec is not None for group in sweep.groups))
        if side_by_side is not None and len(sweep.slots) > 1 and len(groups) > 1:
            side_by_side(groups)
        else:
            for group in groups:
                running.run_group(sweep, group, score, watcher, on_cell, sweep.slots[0])
        # A checkpoint that was deleted while others were run, before its first sample, can never be run.
        if (remaining := sweep.of_runs()).cells:
            gone = {path: why for path, why in remaining.left_out.items() if path not in sweep.left_out}
            _warn_left_out(gone, watcher)
            sweep = remaining
        after = _send_times(sweep)
        if sweep.track and after.items() <= before.items():
            watcher.standing(_nothing_sent(sweep, after))
        for sentence in overwritten.warnings(sweep):
            watcher.warn(sentence)
        ended = with_tables(sweep)
        refused = [result.cell for result in ended.lost if result.reason.startswith(records.REFUSED)]
        for sentence in overwritten.of_other_settings(sweep, refused):
            watcher.warn(sentence)
        return ended


def with_tables(sweep: Sweep) -> EndedSweep:
    """Read the results of a sweep and write its tables. Raises `StoreError`."""
    run_notes.note_cells(sweep)
    cell_results = results(sweep)
    return EndedSweep(results=cell_results, written=table.write(cell_results))


def _warn_left_out(left_out: Mapping[Path, str], watcher: Watcher) -> None:
    """Warn of each checkpoint that is no part of the sweep. left_out: its path → the reason."""
    for path, reason in left_out.items():
        watcher.warn(Sentence(f"{visible(str(path), 200)} is left out: {reason}"))


def _base_to_come(sweep: Sweep, base: str) -> Sentence:
    """The warning about a base of the tables that is a checkpoint to come."""
    example = f" (one that has come is called {visible(sweep.checkpoints[0].name, 80)})" if sweep.checkpoints else ""
    return Sentence(
        f"the base of the tables, {visible(base, 80)}, is no checkpoint yet: until it comes, nothing is compared with "
        f"a base{example}"
    )


def _send_times(sweep: Sweep) -> dict[str, int]:
    """Name of each cell whose score a tracker has where it sends the cell's scores now → the time of the cell's record,
    which is written anew when a score is sent, in nanoseconds. Raises `StoreError`.
    """
    if not sweep.track:
        return {}
    return {
        cell.name: records.path_of(sweep, cell).stat().st_mtime_ns
        for cell in sweep.cells
        if (record := records.read(sweep, cell)) is not None
        and isinstance(record.tracked, dict)
        and record.tracked.items() & sweep.destinations(cell).items()
    }


def _new_tracker_runs(sweep: Sweep, sent: Collection[str]) -> Iterator[Sentence]:
    """Yield a sentence for each series of checkpoints that begins a new tracker run although scores were sent before.

    sent: names of the cells whose score a tracker has.
    """
    trackers = [record.tracked for record in records.read_all(sweep.out)] if sweep.track else []
    if not any(isinstance(tracked, dict) and tracked.keys() & sweep.track.keys() for tracked in trackers):
        return
    series = {cell.name: run[0] for cell in sweep.cells if (run := sweep.tracker_series(cell)) is not None}
    for name in sorted({*series.values()} - {series[cell] for cell in sent if cell in series}):
        yield Sentence(
            f"from now on, scores go to a new tracker run, {visible(name, 200)}: settings, names or the tracker's "
            "place have changed since scores were sent. Scores of other settings stay where they are"
        )


def _nothing_sent(sweep: Sweep, sent: Collection[str]) -> Sentence:
    """The sentence that nothing was sent, and how to send a score again. sent: names of the cells that were sent."""
    parts, n_unsent = [], len(sweep.cells) - len(sent)
    if sent:
        parts.append(f"the scores of {count_noun(len(sent), 'cell')} were sent there before")
    if n_unsent:
        parts.append(f"{count_noun(n_unsent, 'cell')} {are(n_unsent)} incomplete, of other settings or unsent")
    again = ""
    if cell := next((cell for cell in sweep.cells if cell.name in sent), None):
        marks = [option("score.track", [*sweep.track])]
        if (series_step := sweep.tracker_series(cell)) is not None:
            marks += [option("score.step", series_step[1]), option("score.series", series_step[0])]
        folder = visible(str(sweep.folder(cell)), 200)
        again = f". To send one again: `harness score {folder} {' '.join(marks)}`"
    return Sentence(f"nothing is sent to {', '.join(sweep.track)}: {'; '.join(parts)}{again}")


def disagreement(result: CellResult) -> str:
    """The error message for a cell that disagrees with published scores."""
    return f"{visible(result.cell.name, 200)} does not agree with published scores of {visible(result.cell.model, 100)}"
