"""Carries out a whole sweep: its cells are run and scored, and its tables are written.

The command line and Python both call `cells.plan_of` and `run_sweep`.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from harness.core.inert import visible
from harness.judges.judge import try_judge
from harness.progress.watching import Watcher
from harness.runs import RunFolder, sweep_cell
from harness.runs.lock import locked
from harness.runs.sweep_cell import SuiteNote
from harness.sweeps import running, table
from harness.sweeps.cells import Sweep
from harness.sweeps.results import Results, results


def run_sweep(
    sweep: Sweep,
    watcher: Watcher,
    on_cell: running.OnCell = lambda _record: None,
    score: running.Scorer = running.score_cell,
) -> Results:
    """Run and score the cells of a sweep that are not done, let the judge rule, and write the tables.

    Raises `Interrupted`, KeyboardInterrupt, `StoreError` if another process holds the folder, and what `try_judge`
    raises; every other failure is recorded with its cell.
    """
    folder = RunFolder(sweep.out)
    folder.create()
    with locked(folder):
        for words in sweep.remarks:
            watcher.warn(words)
        groups = running.owing(sweep)
        if sweep.judge is not None and groups:
            try_judge(sweep.judge, watcher, may_start=any(cell.options.serve for cell in sweep.cells))
        for group in groups:
            running.run_group(sweep, group, score, watcher, on_cell)
        ended = with_tables(sweep)
        for result in ended.results:
            if result.remark:
                path = visible(str(sweep.folder(result.cell)), 200)
                watcher.warn(f"{result.cell.name}: {result.remark}. For new scores, delete {path}")
        return ended


def with_tables(sweep: Sweep) -> Results:
    """Read the results of a sweep and write its tables. Raises `StoreError`."""
    note_cells(sweep)
    read = results(sweep)
    return replace(read, written=table.write(read))


def note_cells(sweep: Sweep) -> None:
    """Note in each run folder what only the sweep knows of the run: the suite it belongs to, the conditions (such as an
    attention budget) that the suite states for its server, the training step, the run of the step before, its place in
    the table, and its base. A run may be read without its sweep.

    Raises `StoreError`.
    """
    source = (sweep.suite.source or "") if sweep.suite is not None else ""
    latest: dict[tuple[str, str], str] = {}
    places = {cell.name: place for place, cell in enumerate(sweep.cells)}
    for cell in sorted(sweep.cells, key=lambda cell: cell.checkpoint.step if cell.checkpoint else 0):
        folder = RunFolder(sweep.folder(cell))
        if not folder.manifest.is_file():
            continue
        note = SuiteNote(
            source=source,
            conditions=sweep.conditions(cell),
            place=places[cell.name],
            base=sweep.base_cells.get(cell.name, ""),
        )
        if cell.checkpoint is not None:
            of_curve = cell.benchmark, cell.curve
            note = msgspec.structs.replace(
                note, step=cell.checkpoint.step, curve=cell.curve, before=latest.get(of_curve, "")
            )
            latest[of_curve] = folder.path.name
        sweep_cell.write_note(folder, note)
