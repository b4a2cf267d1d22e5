"""What marks a run folder as a cell of a sweep: its name, if the sweep's record of it lies beside, and the sweep note.

    results/<sweep>/cells/MODEL+SERVER+BENCHMARK.json      the sweep's record of the cell
    results/<sweep>/MODEL+SERVER+BENCHMARK/                its run folder
    results/<sweep>/MODEL+SERVER+BENCHMARK/suite.json      its suite, its training step, and what its server differs in

The benchmark is the last part of the name, by the name that it has in the sweep. Two benchmarks of one sweep may be
made from one card, with other questions or other settings: then only these names tell them apart.
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


# ---- the sweep's note


MAX_BYTES = 64 * 1024
"""Largest note that is read, in bytes."""


class SuiteNote(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep's note about one of its runs.

    source: URL of the published scores that the suite repeats; empty for a run outside a suite. conditions: settings of
    the server that no request carries, by the names in published scores: `attention_budget`, in tokens. step: the
    training step of the run's checkpoint; None for a model that is no checkpoint. curve: the name of the curve
    (accuracy over steps) that the step is a point of, without the benchmark; often empty. before: name of the run
    folder, beside this one, of the step before on the curve; empty without one. place: of the cell in the sweep's
    order. base: name of the run folder, beside this one, with which the sweep compares it; empty without one.
    """

    source: str = ""
    conditions: dict[str, str | int | float | bool] = {}
    step: int | None = None
    curve: str = ""
    before: str = ""
    place: int = 0
    base: str = ""


def read_note(folder: RunFolder) -> SuiteNote:
    """The note in a run's folder; an empty one where there is none. Raises `StoreError` for a damaged file."""
    path, remedy = folder.path / "suite.json", "Remove it, and run the sweep again."
    return read_record(path, SuiteNote, MAX_BYTES, what="a sweep's note about a run", remedy=remedy) or SuiteNote()


def write_note(folder: RunFolder, note: SuiteNote) -> None:
    """Write the note, if the folder has another one. Raises `StoreError` when the disk refuses."""
    if read_note(folder) != note:
        write_atomically(folder.path / "suite.json", codec.pretty(note))
