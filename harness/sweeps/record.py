"""The record file of a cell: how it ended, and a stamp of its inputs at that time. Everything else is in the run
folder.

A cell is complete as long as its stamp matches its options, its question files and cards, and its stored samples.
Otherwise the sweep runs the cell again, which requests only missing samples, so losing a record does no harm. Other
processes read the records to find out how the cells ended and whether a process is running the sweep.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.files import read_record, write_atomically
from harness.core.records import SCHEMA_VERSION
from harness.probes.likelihood import Likelihood
from harness.runs import RunFolder
from harness.runs.layout import holder_of, runs_in
from harness.runs.sweep_cell import CELLS, record_path

MAX_BYTES = 64 * 1024
"""Maximum size of a record that is read, in bytes."""


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one cell.

    model: the model that was requested, or a checkpoint's path. done: the stamp of the cell when it was last complete.
    server: checksum of the server that generated its samples (`cell_state.server_stamp`). sent: names of the trackers
    that received its scores. likelihood: the likelihoods that its server assigns to its base's replies. unread: why it
    cannot read them. read: checksum of what determines both (`cell_state.reading_stamp`). reason: why samples are
    missing, or why the run or its scoring failed; empty if nothing is wrong. code: the exit code that this run or
    scoring would have had as a command.
    """

    FORMER_KEYS: ClassVar = ((rb'"gap":(?= ?\{)', b'"difference":'),)

    cell: str
    model: str = ""
    done: str = ""
    server: str = ""
    sent: tuple[str, ...] = ()
    likelihood: Likelihood | None = None
    unread: str = ""
    read: str = ""
    reason: str = ""
    code: int = 0
    schema: int = SCHEMA_VERSION


def read(out: Path, cell: str) -> CellRecord | None:
    """The record of a cell in the sweep's folder `out`; None if it is missing or damaged."""
    with contextlib.suppress(StoreError):
        return read_record(record_path(out, cell), CellRecord, MAX_BYTES, what="a cell's record", remedy="")
    return None


def read_all(out: Path) -> list[CellRecord]:
    """The records in the sweep's folder `out`, by name."""
    stored = [read(out, path.stem) for path in sorted((out / CELLS).glob("*.json"))]
    return [record for record in stored if record is not None]


def write(out: Path, record: CellRecord) -> None:
    """Write the record. Raises `StoreError` if it cannot be written."""
    write_atomically(record_path(out, record.cell), codec.pretty(record))


@dataclass(frozen=True, kw_only=True)
class SeenSweep:
    """The state of a sweep according to its folder. running: whether a process on this host is running it. cells: the
    finished cells.
    """

    path: Path
    running: bool
    cells: Sequence[CellRecord]


def read_sweep(path: Path) -> SeenSweep | None:
    """Read the folder of a sweep, or another folder of runs (which has no cells); None if it is neither."""
    if not runs_in(path):
        return None
    return SeenSweep(path=path.absolute(), running=holder_of(RunFolder(path)) is not None, cells=read_all(path))
