"""Finds cells whose samples are of something else than the sweep would run now: the files of a checkpoint changed, so
that the curve shows scores of other weights, or the server's entry in the sweep's file, or the settings of the samples.

A run on a server that the harness started records checksums of the model's files. They are compared with those of the
files that lie there now. A training that is started again, for example, writes the same folders once more.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from pathlib import Path

from harness.asking import model_files
from harness.core.errors import Sentence, StoreError
from harness.core.inert import visible
from harness.runs import RunFolder
from harness.verbs import former_files
from harness.verbs.sweep import records
from harness.verbs.sweep.cells import Cell, Sweep


def warnings(sweep: Sweep) -> list[Sentence]:
    """A sentence for each checkpoint whose files are not those of its samples, and one for all cells of other servers.

    Cells with samples missing are left out: their runs go on, and refuse other files. So are cells on servers that the
    harness did not start, cells with damaged files, and checkpoints that are still being written.
    """
    changed: dict[Path, tuple[dict[str, None], list[Path]]] = {}
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
                names, runs = changed.setdefault(path, ({}, []))
                names.update(dict.fromkeys(others))
                runs.append(sweep.folder(cell))
    overwritten = [
        Sentence(f"{former_files.in_words(path, list(names))}. For new scores, {_remove(runs)}")
        for path, (names, runs) in changed.items()
    ]
    return [*overwritten, *_of_another_server(sweep)]


def of_other_settings(sweep: Sweep, cells: Sequence[Cell]) -> list[Sentence]:
    """One sentence about these cells, whose samples are of other settings than the file's; none without any."""
    if not cells:
        return []
    others = f" and {len(cells) - 1:,} more" if len(cells) > 1 else ""
    folders = [sweep.folder(cell) for cell in cells if sweep.deleted_checkpoint(cell) is None]
    remove = f"{_remove(folders)}, or " if folders else ""
    return [
        Sentence(
            f"{visible(cells[0].name, 200)}{others}: the samples are of other settings than the file's now. They and "
            f"their scores stay, and nothing is tried again. For scores with the new settings, {remove}give "
            "the entry of `benchmarks` another `name`, so that it has cells of its own"
        )
    ]


def _of_another_server(sweep: Sweep) -> list[Sentence]:
    """One sentence about the finished cells whose server the sweep's file describes otherwise now; none without any."""
    names = []
    for group in sweep.groups:
        for cell in group.cells:
            with contextlib.suppress(StoreError):
                names += [cell.name] if records.of_another_server(sweep, group, cell) else []
    if not names:
        return []
    others = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return [
        Sentence(
            f"{visible(names[0], 200)}{others}: the samples are of the server as the sweep's file described it before, "
            "and the scores stay. For new scores, delete the run folder and give the same command"
        )
    ]


def _remove(folders: Sequence[Path]) -> str:
    """How new scores take the place of those in these run folders, and of no other run of the sweep's folder."""
    command = shlex.join(["rm", "-r", *map(str, folders)])
    return f"`{visible(command)}` and give the same command"
