"""Finds checkpoints whose files changed after their samples were made, so that the curve shows scores of other weights.

A run on a server that the harness started records checksums of the model's files. They are compared with those of the
files that lie there now. A training that is started again, for example, writes the same folders once more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from harness.asking import model_files
from harness.core.errors import Sentence, StoreError
from harness.core.inert import visible
from harness.runs import RunFolder
from harness.runs.sweep_cell import JOIN
from harness.verbs import former_files
from harness.verbs.sweep import records
from harness.verbs.sweep.cells import Sweep


def warnings(sweep: Sweep) -> list[Sentence]:
    """A sentence for each checkpoint whose files are not those of its samples.

    Cells with samples missing are left out: their runs go on, and refuse other files. So are cells on servers that the
    harness did not start, cells with damaged files, and checkpoints that are still being written.
    """
    changed: dict[str, tuple[Path, dict[str, None]]] = {}
    present: dict[Path, dict[str, str]] = {}
    started = [(group, cell) for group in sweep.groups if group.spec is not None for cell in group.cells]
    for group, cell in started:
        path = sweep.checkpoint_path(cell)
        with contextlib.suppress(StoreError, OSError):
            if path is None or path in sweep.postponed or not path.exists():
                continue
            if records.sampled_record(sweep, group, cell) is None:
                continue
            if not (facts := former_files.recorded_checksums(RunFolder(sweep.folder(cell)))):
                continue
            if path not in present:
                present[path] = model_files.fingerprints(str(path))
            if others := former_files.changed_files(facts, path, present[path]):
                changed.setdefault(cell.point["models"], (path, {}))[1].update(dict.fromkeys(others))
    return [_sentence(path, list(names), sweep.out / entry) for entry, (path, names) in changed.items()]


def _sentence(path: Path, names: Sequence[str], runs: Path) -> Sentence:
    """The warning. names: what changed. runs: the beginning of the paths of the checkpoint's run folders."""
    return Sentence(
        f"{former_files.in_words(path, names)}. For new scores, delete {visible(str(runs), 200)}{JOIN}* and give the "
        "same command"
    )
