"""What became of each cell, a small file each: so that the same command again does what is left, and no more."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from harness.core import codec
from harness.core.codec import digest
from harness.core.errors import StoreError
from harness.core.files import open_named, open_untrusted, write_atomically
from harness.core.records import SCHEMA_VERSION
from harness.verbs.sweep.cells import Cell, ServerGroup, Sweep

Stage = Literal["sampled", "scored", "judged", "failed"]

MAX_BYTES = 64 * 1024

_NO_MATTER = (
    "header", "api_key_env", "api_key_file", "ca_file", "concurrency", "metrics_port", "metrics_host", "break_lock",
    "rpm", "tpm", "attempts", "first_token_timeout", "idle_timeout", "price_in", "price_out", "prices", "lengths_from",
    "out", "transport", "budget_tokens", "budget_usd",
)  # fmt: skip
"""Options that change no sample: with others the cell is as done as before."""


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """stage: the last one that ended. of_samples, scoring: checksums of what shapes the samples, and the scoring.

    reason: why samples are owed, or why the cell failed; empty where all is well. code: the exit code that a run or a
    scoring of its own would have had.
    """

    cell: str
    stage: Stage
    of_samples: str = msgspec.field(name="asked")
    scoring: str
    reason: str = ""
    code: int = 0
    schema: int = SCHEMA_VERSION

    @property
    def lost(self) -> bool:
        """The cell is not what was asked for."""
        return bool(self.reason)


def path_of(sweep: Sweep, cell: Cell) -> Path:
    """Beside the run folders, so that a cell whose server never started has one too."""
    return sweep.out / "cells" / f"{cell.name}.json"


def read(sweep: Sweep, cell: Cell) -> CellRecord | None:
    """None before the cell's first stage. Raises `StoreError` for a damaged file."""
    path = path_of(sweep, cell)
    try:
        with open_untrusted(path) as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise StoreError(f"{path} is larger than {MAX_BYTES} bytes: it is no record of a cell.")
        return codec.decode(data, CellRecord)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error
    except codec.DecodeError as error:
        raise StoreError(
            f"{path} is no record of a cell ({error}); remove it, and the cell is looked at again."
        ) from error


def write(sweep: Sweep, record: CellRecord) -> None:
    """Raises `StoreError` when the disk refuses."""
    write_atomically(sweep.out / "cells" / f"{record.cell}.json", codec.pretty(record))


def of_samples(group: ServerGroup, cell: Cell) -> str:
    """Checksum of what shapes the cell's samples."""
    options = {name: value for name, value in cell.options.plain.items() if name not in _NO_MATTER}
    if "target_error" in options:  # as a fraction, as it stands in the checksums of sweeps that are begun
        options["target_error"] = round(options["target_error"] / 100, 12)
    spec = {name: value for name, value in (group.spec or {}).items() if name not in ("port", "devices", "name")}
    return digest([options, spec, [_content(path) for path in (cell.options.data, *cell.options.benchmarks) if path]])


def _content(path: str) -> str:
    """Checksum of a file of questions, or of a card's file: with another content the cell is another."""
    try:
        with open_named(Path(path)) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def scoring(sweep: Sweep) -> str:
    """Checksum of how cells are scored."""
    judge = sweep.judge.plain if sweep.judge is not None else None
    return digest([sweep.score.plain, judge])


def sampled(sweep: Sweep, group: ServerGroup, cell: Cell) -> CellRecord | None:
    """The record of a cell that owes no sample; None where it does, or may: of a server that nobody names a model of,
    only the server can tell whether it still is the same."""
    if group.spec is None and cell.options.model is None:
        return None
    record = read(sweep, cell)
    whole = record is not None and record.stage != "failed" and record.of_samples == of_samples(group, cell)
    return record if whole and sweep.folder(cell).joinpath("manifest.json").is_file() else None


def scored(sweep: Sweep, group: ServerGroup, cell: Cell) -> CellRecord | None:
    """The record of a cell that is whole: sampled, scored, and judged where the sweep has a judge."""
    record = sampled(sweep, group, cell)
    last = "scored" if sweep.judge is None else "judged"
    return record if record is not None and record.stage == last and record.scoring == scoring(sweep) else None
