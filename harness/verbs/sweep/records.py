"""The record of each cell, a small file: it lets the same command again do only what is left.

Another process reads the records, too: it sees how the cells ended, and whether a process carries the sweep out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from harness.core import codec
from harness.core.codec import digest
from harness.core.errors import HarnessError, StoreError
from harness.core.files import read_record, write_atomically
from harness.core.inert import visible
from harness.core.records import SCHEMA_VERSION
from harness.runs import RunFolder
from harness.runs.layout import runs_in
from harness.runs.lock import is_alive, last_holder
from harness.runs.survey import stored_keys
from harness.runs.sweep_cell import CELLS, record_path
from harness.verbs.sweep import curve_settings
from harness.verbs.sweep.cells import Cell, ServerGroup, Sweep

if TYPE_CHECKING:
    from harness.asking.prepare import Asked

Stage = Literal["sampled", "scored", "judged", "failed"]

MAX_BYTES = 64 * 1024
"""Largest size in bytes of a record that is read; a larger file is refused."""


MAX_REASON_CHARS = 600
"""Largest length of a cell's reason, which has room for two paths of a usual length; longer ones lose sentences."""

NOT_STARTED = "the server did not start: "
"""The reason of a cell begins with these words if the server that was to be started for it did not start."""

REFUSED = "its samples are of other settings: "
"""The reason of a cell begins with these words if its run folder holds samples of other settings than the file's."""

_NO_MATTER = (
    "header", "api_key_env", "ca_file", "concurrency",
    "rpm", "attempts", "first_token_timeout", "idle_timeout", "price_in", "price_out", "prices",
    "out", "transport", "budget_tokens", "budget_usd", "canary",
)  # fmt: skip
"""Options that change no sample: a cell stays done when they change."""


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one cell.

    stage: the last stage that ended. of_samples: checksum of everything that determined the samples, the file's entry
    of the server among it. of_options: the same without the server; empty in records of earlier versions. of_curve:
    checksum of the settings that its samples share with those of the other steps of a curve; empty in records of
    earlier versions. scoring: checksum of everything that determines the scores. tracked: name of each tracker that got
    the scores → checksum of where it sent them (`Sweep.destinations`); the names alone in records of earlier versions.
    reason: why samples are missing, or the run or its scoring failed; empty if nothing is wrong. code: the exit code
    that this run or scoring would have had as a command. refused: `of_options` of the settings under which the run
    refused its stored samples, since they were made with others; the rest of the record stays that of these samples.
    """

    cell: str
    stage: Stage
    # The file's key keeps the name under which earlier versions wrote it.
    of_samples: str = msgspec.field(name="asked")
    of_options: str = ""
    of_curve: str = ""
    scoring: str
    tracked: dict[str, str] | tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    reason: str = ""
    code: int = 0
    refused: str | msgspec.UnsetType = msgspec.UNSET
    schema: int = SCHEMA_VERSION

    @property
    def lost(self) -> bool:
        """Whether samples of the cell are missing, or its run or scoring failed."""
        return bool(self.reason)


def path_of(sweep: Sweep, cell: Cell) -> Path:
    """Path of the cell's record.

    It lies outside the run folder, so that a cell whose server never started has a record too.
    """
    return record_path(sweep.out, cell.name)


def read(sweep: Sweep, cell: Cell) -> CellRecord | None:
    """The record of the cell; None before its first stage. Raises `StoreError` for a damaged file."""
    return _read(path_of(sweep, cell))


def read_all(out: Path) -> list[CellRecord]:
    """The records in the sweep's folder `out`, by name. Raises `StoreError` for a damaged file."""
    stored_records = [_read(path) for path in sorted((out / CELLS).glob("*.json"))]
    return [record for record in stored_records if record is not None]


def _read(path: Path) -> CellRecord | None:
    """The record in the file; None if there is no file. Raises `StoreError` for a damaged file."""
    remedy = "Remove it, and the sweep looks at the cell again."
    return read_record(path, CellRecord, MAX_BYTES, what="a cell's record", remedy=remedy)


def write(sweep: Sweep, record: CellRecord) -> None:
    """Write the record. Raises `StoreError` when the disk refuses."""
    write_atomically(record_path(sweep.out, record.cell), codec.pretty(record))


def of_samples(group: ServerGroup, cell: Cell) -> str:
    """Checksum of everything that determines the cell's samples, the server among it."""
    options, contents = _options(cell)
    # Where a server runs and what it is called change no sample.
    spec = {name: value for name, value in (group.spec or {}).items() if name not in ("port", "devices", "name")}
    return digest([options, spec, contents])


def of_options(cell: Cell) -> str:
    """Checksum of everything but the server that determines the cell's samples; if it changes, the cell is sampled
    again.
    """
    return digest([*_options(cell)])


def of_curve(sweep: Sweep, cell: Cell, *, sampled_now: bool) -> str:
    """Checksum of the settings that the cell's samples share with those of the other steps of a curve.

    sampled_now: the samples have just been made, or found to be of the settings in the file. Raises `StoreError`.
    """
    former = None if sampled_now else read(sweep, cell)
    return former.of_curve if former is not None else curve_settings.checksum({cell.benchmark: cell.options})


def refuse_other_curve(sweep: Sweep, cell: Cell) -> None:
    """Raise `StoreError` if the cell's samples are known to be of other settings than the file's now.

    It is for the cell of a deleted checkpoint, for which no server is started: a run would compare all settings.
    """
    if of_curve(sweep, cell, sampled_now=False) not in ("", of_curve(sweep, cell, sampled_now=True)):
        error = StoreError(f"{cell.name}: its samples are of other settings")
        error.other_settings = f"its checkpoint was deleted, and options of {visible(cell.benchmark, 80)} have changed"
        raise error


def _options(cell: Cell) -> tuple[dict[str, Any], list[str]]:
    """The cell's options that determine its samples, and the checksums of the files that these name."""
    options = {name: value for name, value in cell.options.plain.items() if name not in _NO_MATTER}
    if "target_error" in options:  # A fraction, because the checksums of sweeps begun earlier hold fractions.
        options["target_error"] = round(options["target_error"] / 100, 12)
    return options, curve_settings.contents(cell.options)


def scoring(sweep: Sweep) -> str:
    """Checksum of everything that determines how cells are scored; if it changes, cells are scored again."""
    judge = sweep.judge.plain if sweep.judge is not None else None
    options = dict(sweep.score.plain)
    if len(options.get("also", ())) == 1:  # A text, because the checksums of sweeps begun earlier hold a text.
        (options["also"],) = options["also"]
    return digest([options, judge])


def sampled_record(sweep: Sweep, group: ServerGroup, cell: Cell) -> CellRecord | None:
    """The record of the cell if it has all samples that the sweep plans now; else None.

    They may be of a server that the sweep's file describes otherwise now (`of_another_server`): a finished cell starts
    no server to be asked who it is. Also None if the cell's options name a running server and no model: only the
    server can say whether it still serves the same model. Raises `StoreError` for a damaged record.
    """
    if group.spec is None and cell.options.model is None:
        return None
    record = read(sweep, cell)
    if record is None or record.stage == "failed":
        return None
    whole = record.of_options == of_options(cell) or record.of_samples == of_samples(group, cell)
    return record if whole and sweep.folder(cell).joinpath("manifest.json").is_file() else None


def n_stored(sweep: Sweep, cell: Cell, questions: Asked) -> tuple[int, int]:
    """How many of the samples that the sweep plans now the cell has stored, and how many these are.

    Raises `StoreError`.
    """
    (question_set,) = questions.sets
    plan, ids = questions.benchmarks[question_set.name].plan(), question_set.ids
    stored = stored_keys(RunFolder(sweep.folder(cell)).benchmark(question_set.name))
    return plan.n_stored(stored, ids), plan.total(ids)


def waits_for_change(sweep: Sweep, group: ServerGroup, cell: Cell) -> bool:
    """Whether the cell has no sample that the sweep plans now because its server did not start, or because its folder
    holds samples of other settings.
    """
    record = read(sweep, cell)
    if record is None or record.refused == of_options(cell):
        return record is not None and RunFolder(sweep.folder(cell)).has_samples()
    return record.reason.startswith(NOT_STARTED) and record.of_samples == of_samples(group, cell)


def of_another_server(sweep: Sweep, group: ServerGroup, cell: Cell) -> bool:
    """Whether the cell has all its samples, and the sweep's file described their server otherwise. Raises
    `StoreError` for a damaged record.
    """
    record = sampled_record(sweep, group, cell)
    return record is not None and record.of_samples != of_samples(group, cell)


def scored_record(sweep: Sweep, group: ServerGroup, cell: Cell) -> CellRecord | None:
    """The record of the cell if it is complete, that is sampled, scored, judged (if the sweep has a judge) and sent to
    the sweep's trackers; else None. Raises `StoreError` for a damaged record.
    """
    record = sampled_record(sweep, group, cell)
    if record is None:
        return None
    last = "scored" if sweep.judge is None else "judged"
    sent = _is_sent(record, sweep.destinations(cell))
    return record if sent and record.stage == last and record.scoring == scoring(sweep) else None


def sent_before(sweep: Sweep, cell: Cell, stage: Stage) -> dict[str, str]:
    """Name of each tracker that got the score that the cell has at this stage → checksum of where it sent the score.

    Empty if the cell has not reached this stage since its last sample, or was scored otherwise. Raises `StoreError` for
    a damaged record.
    """
    record = read(sweep, cell)
    if record is None or record.stage != stage or record.scoring != scoring(sweep):
        return {}
    return record.tracked if isinstance(record.tracked, dict) else {}


def _is_sent(record: CellRecord, destinations: Mapping[str, str]) -> bool:
    """Whether each tracker got the cell's scores, where it sends scores now as far as is known."""
    sent = record.tracked or {}
    former = sent if isinstance(sent, dict) else {}
    return all(name in sent and former.get(name, now) == now for name, now in destinations.items())


def in_one_line(sentence: str) -> str:
    """`sentence` without line breaks, for tables and footnotes."""
    joined = ""
    for line in filter(None, map(str.strip, sentence.splitlines())):
        joined += ("" if not joined else " " if joined.endswith((":", ".", ";")) else "; ") + line
    return joined


def whole_sentences(text: str) -> str:
    """`text` without control characters, cut after the last sentence that ends within `MAX_REASON_CHARS`; a single
    sentence that is longer is cut inside.
    """
    shown = visible(text.strip(), MAX_REASON_CHARS)
    return f"{shown.rpartition('. ')[0]}. …" if shown.endswith("…") and ". " in shown else shown


def refusal_in_words(error: HarnessError) -> str:
    """The reason of a cell whose run folder holds samples of other settings."""
    return whole_sentences(REFUSED + in_one_line(error.other_settings))


def refusal(sweep: Sweep, cell: Cell, error: HarnessError) -> CellRecord:
    """The record of such a cell: its samples keep the stage that they reached. Raises `StoreError`."""
    former = read(sweep, cell) or CellRecord(cell=cell.name, stage="failed", of_samples="", scoring="")
    reason, options = refusal_in_words(error), of_options(cell)
    return msgspec.structs.replace(former, reason=reason, code=error.exit_code, refused=options)


# ---- for another process


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
    return SeenSweep(path=path.absolute(), running=holder is not None and is_alive(holder), cells=read_all(path))
