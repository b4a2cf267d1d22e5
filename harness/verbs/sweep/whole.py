"""A whole sweep: `plan_of` makes the plan from the file, `carry_out` runs it and writes the tables.

The command line and Python both call these two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.asking.options.judge import JudgeOptions
from harness.asking.options.run import RunOptions
from harness.asking.options.whom import SERVED
from harness.asking.watching import Watcher
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.runs import RunFolder, suite_file
from harness.runs.suite_file import SuiteNote
from harness.verbs.judge import try_judge
from harness.verbs.score import destinations_of, trackers_named
from harness.verbs.sweep import cells, running, shared_servers, table
from harness.verbs.sweep import file as files
from harness.verbs.sweep.cells import ServerGroup, Sweep
from harness.verbs.sweep.file import SweepFile
from harness.verbs.sweep.results import NOT_RUN, CellResult, Results, results
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
    file: SweepFile | None = None,
) -> Sweep:
    """The plan of a sweep's file, or of a suite.

    name: path of the file, or name of a suite. given: options of a run that override the file's, `serve` among them.
    judge: options of a judge that override the file's. In `given` and `judge`, an option that is None stays as the file
    has it, except a seed. k: of pass@k in the tables, in place of the file's. track: names of the trackers that get
    each cell's scores. file: as it was read for an earlier plan; None: it is read now. Raises `UsageError` with file
    and line, or with the option.
    """
    over = RunOptions.without_unset(given)
    try:
        serve = SERVED.parse(over.pop("serve", None))
    except ValueError as error:
        raise UsageError(str(error), field="serve") from error
    file = file or files.read(files.find(name))
    sweep = cells.plan(file, over, serve, JudgeOptions.without_unset(judge))
    trackers_named(track)  # An unknown name is refused now, not after the first cell.
    sweep = replace(sweep, track=destinations_of(track), remarks=[*sweep.remarks, *shared_servers.without_model(sweep)])
    return sweep if k is None else replace(sweep, table=sweep.table.model_copy(update={"k": k}))


@dataclass(frozen=True, kw_only=True)
class EndedSweep:
    """A finished sweep. written: the files of the tables."""

    results: Results
    written: Sequence[Path]

    @property
    def lost(self) -> list[CellResult]:
        """The cells that failed, miss samples or cannot be read, without those that are still to be run."""
        found = [result for result in self.results.results if result.reason]
        return [one for one in found if one.reason != NOT_RUN or not self.results.sweep.is_held(one.cell)]

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
        for words in sweep.remarks:
            watcher.warn(words)
        groups = running.owing(sweep)
        if sweep.judge is not None and groups:
            try_judge(sweep.judge, watcher, may_start=any(group.spec is not None for group in sweep.groups))
        if side_by_side is not None and len(sweep.slots) > 1 and len(groups) > 1:
            side_by_side(groups)
        else:
            for group in groups:
                running.run_group(sweep, group, score, watcher, on_cell, sweep.slots[0])
        ended = with_tables(sweep)
        for result in ended.results.results:
            if result.remark:
                folder = visible(str(sweep.folder(result.cell)), 200)
                watcher.warn(f"{result.cell.name}: {result.remark}. For new scores, delete {folder}")
        return ended


def with_tables(sweep: Sweep) -> EndedSweep:
    """Read the results of a sweep and write its tables. Raises `StoreError`."""
    note_cells(sweep)
    cell_results = results(sweep)
    return EndedSweep(results=cell_results, written=table.write(cell_results))


def disagreement(result: CellResult) -> str:
    """The error message for a cell that disagrees with published scores."""
    return f"{visible(result.cell.name, 200)} does not agree with published scores of {visible(result.cell.model, 100)}"


def note_cells(sweep: Sweep) -> None:
    """Note in each run folder what only the sweep knows of the run: the suite it belongs to, the conditions (such as an
    attention budget) that the suite states for its server, the training step, and the run of the step before. A run may
    be read without its sweep.

    Raises `StoreError`.
    """
    source = (sweep.suite.source or "") if sweep.suite is not None else ""
    cells = [(*(sweep.step_of(cell) or ("", None)), cell) for cell in sweep.cells]
    latest: dict[tuple[str, str], str] = {}
    for curve, step, cell in sorted(cells, key=lambda item: item[1] or 0):
        folder = RunFolder(sweep.folder(cell))
        if folder.manifest.is_file():
            of_curve = cell.benchmark, curve
            note = SuiteNote(
                source=source,
                conditions=sweep.conditions(cell),
                step=step,
                curve=curve,
                before="" if step is None else latest.get(of_curve, ""),
            )
            suite_file.write(folder, note)
            latest[of_curve] = folder.path.name
