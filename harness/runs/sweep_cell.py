"""Which cell of a sweep a run folder is: what its folder's name says, if the sweep's record of it lies beside.

    results/<sweep>/cells/MODEL+SERVER+BENCHMARK.json      the sweep's record of the cell
    results/<sweep>/MODEL+SERVER+BENCHMARK/                its run folder

The benchmark is the last part, by the name that it has in the sweep. Two benchmarks of one sweep may be made from one
card, with other questions or other settings: then only these names tell them apart.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from harness.runs.layout import RunFolder

JOIN = "+"
"""Stands between the parts of a cell's name; the name of an entry never contains it."""

CELLS = "cells"
"""Name of the folder of the cells' records in the sweep's folder."""


def record_path(sweep: Path, cell: str) -> Path:
    """Path of the record of the cell `cell` in the sweep's folder."""
    return sweep / CELLS / f"{cell}.json"


def sweep_around(folder: RunFolder) -> Path | None:
    """The sweep's folder in which a cell's run folder lies; None for any other run.

    The folder around is a sweep's if it has a lock and no manifest: no other command locks a folder of runs. And a
    cell's name has parts, joined by `JOIN`. (The cell's record is no sign: it is written after the samples.)
    """
    around = RunFolder(folder.path.parent)
    is_sweep = around.lock.is_file() and not around.manifest.is_file()
    return around.path if is_sweep and JOIN in folder.path.name else None


def names_in_sweep(folder: RunFolder, stored: Collection[str]) -> dict[str, str]:
    """Name of the run's benchmark in its files → its name in the sweep; empty for a run that is no cell of a sweep.

    stored: the names of all benchmarks of the run; a cell has one.
    """
    cell = folder.path.name
    if len(stored) != 1 or not record_path(folder.path.parent, cell).is_file():
        return {}
    return dict.fromkeys(stored, cell.rpartition(JOIN)[2])
