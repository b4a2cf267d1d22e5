"""The record of a cell as a file, without the plan of the sweep; and the settings of a cell as checksums.

Another process reads the records, too: it sees how the cells ended, and whether a process carries the sweep out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from harness.asking.options import RunOptions
from harness.asking.options.request import HowReasoned, HowWritten, WhichPreset
from harness.asking.options.what import WhatIsAsked
from harness.core.codec import digest
from harness.core.files import open_named, read_record
from harness.core.options import options_of
from harness.core.records import SCHEMA_VERSION
from harness.presets.sampling import SamplingOptions
from harness.runs import RunFolder
from harness.runs.layout import runs_in
from harness.runs.lock import holder_of
from harness.runs.recorded_settings import FREE_IN_A_CURVE
from harness.runs.sweep_cell import CELLS

Stage = Literal["sampled", "scored", "judged", "failed"]

MAX_BYTES = 64 * 1024
"""Largest size in bytes of a record that is read; a larger file is refused."""

_OF_A_CURVE = {"api"}.union(
    *map(options_of, (WhatIsAsked, WhichPreset, SamplingOptions, HowReasoned, HowWritten))
).difference(("samples", "stream"), FREE_IN_A_CURVE)
"""Options that the points of one curve in a tracker share: what is asked, and how, without how often."""


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one cell.

    stage: the last stage that ended. settings: checksum of everything but the server that determined the samples.
    server: checksum of the file's entry of the server that made them. model: the model that was asked; a checkpoint's
    path. scoring: checksum of everything that determines the scores. tracked: name of each tracker that got the scores
    → checksum of where it sent them (`Sweep.destinations`). reason: why samples are missing, or the run or its scoring
    failed; empty if nothing is wrong. code: the exit code that this run or scoring would have had as a command.
    """

    cell: str
    stage: Stage
    # The file's key keeps the name under which earlier versions wrote it.
    settings: str = msgspec.field(name="of_options", default="")
    server: str = ""
    model: str = ""
    scoring: str = ""
    tracked: dict[str, str] = {}
    reason: str = ""
    code: int = 0
    schema: int = SCHEMA_VERSION

    @property
    def lost(self) -> bool:
        """Whether samples of the cell are missing, or its run or scoring failed."""
        return bool(self.reason)


def read_all(out: Path) -> list[CellRecord]:
    """The records in the sweep's folder `out`, by name. Raises `StoreError` for a damaged file."""
    stored_records = [read_file(path) for path in sorted((out / CELLS).glob("*.json"))]
    return [record for record in stored_records if record is not None]


def read_file(path: Path) -> CellRecord | None:
    """The record in the file; None if there is no file. Raises `StoreError` for a damaged file."""
    remedy = "Remove it, and the sweep looks at the cell again."
    return read_record(path, CellRecord, MAX_BYTES, what="a cell's record", remedy=remedy)


def curve_settings(by_benchmark: Mapping[str, RunOptions]) -> str:
    """Checksum of the settings that the points of one curve in a tracker share, 8 hexadecimal digits.

    by_benchmark: name of each benchmark in the sweep → the options of one of its cells on the curve.
    """
    shared = {
        name: [{key: value for key, value in options.plain.items() if key in _OF_A_CURVE}, contents(options)]
        for name, options in sorted(by_benchmark.items())
    }
    return digest(shared)[:8]


def contents(options: RunOptions) -> list[str]:
    """Checksums of the files (questions, cards) that the options name; an empty one for a benchmark's name."""
    checksums = []
    for path in filter(None, (options.data, *options.benchmarks)):
        try:
            with open_named(Path(path)) as file:
                checksums.append(hashlib.file_digest(file, "sha256").hexdigest())
        except OSError:  # A benchmark's name is no file; the name itself stands in the options.
            checksums.append("")
    return checksums


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
    return SeenSweep(path=path.absolute(), running=holder_of(RunFolder(path)) is not None, cells=read_all(path))
