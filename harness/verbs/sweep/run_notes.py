"""The note that a sweep leaves in the folder of each run, for those who read the run without its sweep."""

from __future__ import annotations

from harness.runs import RunFolder, suite_file
from harness.runs.suite_file import SuiteNote
from harness.verbs.sweep import record, stamps
from harness.verbs.sweep.cells import Sweep


def note_cells(sweep: Sweep) -> None:
    """Note in each run folder what only the sweep knows of the run: the suite it belongs to, the conditions (such as an
    attention budget) that the suite states for its server, the training step, the run of the step before, and whether
    the file asks for more samples. A run may be read without its sweep.

    Raises `StoreError`.
    """
    source = (sweep.suite.source or "") if sweep.suite is not None else ""
    cells = [(*(sweep.step_of(cell) or ("", None)), cell) for cell in sweep.cells]
    latest: dict[tuple[str, str], str] = {}
    for curve, step, cell in sorted(cells, key=lambda item: item[1] or 0):
        folder = RunFolder(sweep.folder(cell))
        if folder.manifest.is_file():
            conditions = sweep.suite.conditions.get(cell.point.get("servers", ""), {}) if sweep.suite else {}
            of_curve = cell.benchmark, curve
            note = SuiteNote(
                source=source,
                conditions=conditions,
                step=step,
                curve=curve,
                before="" if step is None else latest.get(of_curve, ""),
                is_whole=stamps.is_whole(sweep, cell, record.read(sweep.out, cell.name)),
            )
            suite_file.write(folder, note)
            latest[of_curve] = folder.path.name
