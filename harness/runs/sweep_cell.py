"""What marks a run folder as a cell of a sweep: its name, if the sweep has a record of the cell, and the sweep note.

    results/<sweep>/cells/MODEL+SERVER+BENCHMARK.json      the sweep's record of the cell
    results/<sweep>/MODEL+SERVER+BENCHMARK/                its run folder
    results/<sweep>/MODEL+SERVER+BENCHMARK/suite.json      its suite, its training step, and how its server differs

The last part of the name is the benchmark's name in the sweep. Two benchmarks of one sweep may use the same card with
different questions or settings; then only these names distinguish them.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from harness.core import codec
from harness.core.files import read_record, write_atomically
from harness.runs.layout import RunFolder

JOIN = "+"
"""Stands between the parts of a cell's name; the name of an entry never contains it."""

CELLS = "cells"
"""Name of the folder of the cells' records in the sweep's folder."""


def record_path(sweep: Path, cell: str) -> Path:
    """Path of the record of the cell `cell` in the sweep's folder."""
    return sweep / CELLS / f"{cell}.json"


def sweep_around(folder: RunFolder) -> Path | None:
    """The sweep's folder that contains a cell's run folder; None for any other run.

    The parent folder is a sweep's if it has a lock but no manifest, since no other command locks a folder of runs. In
    addition, a cell's name has parts joined by `JOIN`. (The cell's record cannot be used, because it is written after
    the samples.)
    """
    around = RunFolder(folder.path.parent)
    is_sweep = around.lock.is_file() and not around.manifest.is_file()
    return around.path if is_sweep and JOIN in folder.path.name else None


def names_in_sweep(folder: RunFolder, stored: Collection[str]) -> dict[str, str]:
    """Name of the run's benchmark in its files → its name in the sweep; empty if the run is not a cell of a sweep.

    stored: the names of all the run's benchmarks; a cell has one.
    """
    cell = folder.path.name
    if len(stored) != 1 or not record_path(folder.path.parent, cell).is_file():
        return {}
    return dict.fromkeys(stored, cell.rpartition(JOIN)[2])


# ---- the sweep's note


MAX_BYTES = 64 * 1024
"""Largest note that is read, in bytes."""


class SuiteNote(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep's note about one of its runs.

    source: URL of the published scores that the suite reproduces; empty for a run outside a suite. conditions: server
    settings that are not part of requests, by their names in published scores: `attention_budget`, in tokens. step: the
    training step of the run's checkpoint; None if the model is not a checkpoint. curve: the name of the curve (accuracy
    over steps) that the step belongs to, without the benchmark; often empty. before: name of the neighboring run folder
    of the curve's previous step, or empty. place: position of the cell in the sweep's order. base: name of the
    neighboring run folder with which the sweep compares this one, or empty.
    """

    source: str = ""
    conditions: dict[str, str | int | float | bool] = {}
    step: int | None = None
    curve: str = ""
    before: str = ""
    place: int = 0
    base: str = ""


def read_note(folder: RunFolder) -> SuiteNote:
    """The note in a run's folder, or an empty one. Raises `StoreError` for a damaged file."""
    path, remedy = folder.path / "suite.json", "Remove it, and run the sweep again."
    return read_record(path, SuiteNote, MAX_BYTES, what="a sweep's note about a run", remedy=remedy) or SuiteNote()


def write_note(folder: RunFolder, note: SuiteNote) -> None:
    """Write the note if it differs from the one in the folder. Raises `StoreError` if the disk write fails."""
    if read_note(folder) != note:
        write_atomically(folder.path / "suite.json", codec.pretty(note))
