"""Reads from a sweep's folder, for another process, how its cells ended and whether a process carries the sweep out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.runs import RunFolder
from harness.runs.layout import runs_in
from harness.runs.lock import is_alive, last_holder
from harness.verbs.sweep import records
from harness.verbs.sweep.records import CellRecord


@dataclass(frozen=True, kw_only=True)
class SeenSweep:
    """A sweep by its folder. running: whether a process of this host carries it out. cells: the cells that ended."""

    path: Path
    running: bool
    cells: Sequence[CellRecord]


def look(path: Path) -> SeenSweep | None:
    """Read the folder of a sweep, or another folder of runs, which has no cells; None if it is neither.

    Raises `StoreError` for a damaged record of a cell.
    """
    if not runs_in(path):
        return None
    holder = last_holder(RunFolder(path))
    return SeenSweep(
        path=path.absolute(), running=holder is not None and is_alive(holder), cells=records.recorded(path)
    )
