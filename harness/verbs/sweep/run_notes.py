"""The note that a sweep leaves in the folder of each run, for those who read the run without its sweep."""

from __future__ import annotations

from harness.runs import RunFolder, suite_file
from harness.runs.suite_file import SuiteNote
from harness.verbs.sweep.cells import Sweep


def note_cells(sweep: Sweep) -> None:
    """Note in each run folder what only the sweep knows of the run: the suite it belongs to, the conditions (such as an
    attention budget) that the suite states for its server, the training step, and the run of the step before. A run may
    be read without its sweep.

    Raises `StoreError`.
    """
    source = (sweep.suite.source or "") if sweep.suite is not None else ""
    latest: dict[tuple[str, str], str] = {}
    for cell in sorted(sweep.cells, key=lambda cell: (sweep.step_of(cell) or ("", 0))[1]):
        folder = RunFolder(sweep.folder(cell))
        if folder.manifest.is_file():
            conditions = sweep.suite.conditions.get(cell.point.get("servers", ""), {}) if sweep.suite else {}
            curve, step = sweep.step_of(cell) or ("", None)
            before = "" if step is None else latest.get((cell.benchmark, curve), "")
            note = SuiteNote(source=source, conditions=conditions, step=step, curve=curve, before=before)
            suite_file.write(folder, note)
            latest[cell.benchmark, curve] = folder.path.name
