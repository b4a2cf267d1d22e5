"""What the records of a sweep's cells say: the same command again does only what is left."""

from __future__ import annotations

from harness.core import codec
from harness.core.codec import digest
from harness.core.errors import HarnessError
from harness.core.files import write_atomically
from harness.core.inert import visible
from harness.runs.sweep_cell import record_path
from harness.verbs.sweep.cell_record import CellRecord, Stage, contents, read_file
from harness.verbs.sweep.cells import Cell, ServerGroup, Sweep

MAX_REASON_CHARS = 600
"""Largest length of a cell's reason, which has room for two paths of a usual length; longer ones lose sentences."""

REFUSED = "its samples are of other settings: "
"""The reason of a cell begins with these words if its run folder holds samples of other settings than the file's."""

_NO_MATTER = (
    "header", "api_key_env", "ca_file", "concurrency",
    "rpm", "attempts", "first_token_timeout", "idle_timeout", "prices",
    "out", "transport", "budget_tokens", "budget_usd", "canary",
)  # fmt: skip
"""Options that change no sample: a cell stays done when they change."""


def read(sweep: Sweep, cell: Cell) -> CellRecord | None:
    """The record of the cell; None before its first stage. Raises `StoreError` for a damaged file.

    It lies outside the run folder, so that a cell whose server never started has a record too.
    """
    return read_file(record_path(sweep.out, cell.name))


def write(sweep: Sweep, record: CellRecord) -> None:
    """Write the record. Raises `StoreError` when the disk refuses."""
    write_atomically(record_path(sweep.out, record.cell), codec.pretty(record))


def settings(cell: Cell) -> str:
    """Checksum of everything but the server that determines the cell's samples."""
    options = {name: value for name, value in cell.options.plain.items() if name not in _NO_MATTER}
    return digest([options, contents(cell.options)])


def server(group: ServerGroup) -> str:
    """Checksum of the file's entry of the server; where a server runs and what it is called change no sample."""
    return digest(
        {name: value for name, value in (group.spec or {}).items() if name not in ("port", "devices", "name")}
    )


def scoring(sweep: Sweep) -> str:
    """Checksum of everything that determines how cells are scored; if it changes, cells are scored again."""
    return digest([sweep.score.plain, sweep.judge.plain if sweep.judge is not None else None])


def sampled_record(sweep: Sweep, group: ServerGroup, cell: Cell) -> CellRecord | None:
    """The record of the cell if it has all samples that the sweep plans now; else None.

    They may be of a server that the sweep's file describes otherwise now: a finished cell starts no server to be asked
    who it is. Also None if the cell's options name a running server and no model: only the server can say whether it
    still serves the same model. Raises `StoreError` for a damaged record.
    """
    record = None if group.spec is None and cell.options.model is None else read(sweep, cell)
    if record is None or record.stage == "failed" or record.settings != settings(cell):
        return None
    return record if sweep.folder(cell).joinpath("manifest.json").is_file() else None


def scored_record(sweep: Sweep, group: ServerGroup, cell: Cell) -> CellRecord | None:
    """The record of the cell if it is complete, that is sampled, scored, judged (if the sweep has a judge) and sent to
    the sweep's trackers; else None. Raises `StoreError` for a damaged record.
    """
    record = sampled_record(sweep, group, cell)
    if record is None or record.stage != sweep.last_stage or record.scoring != scoring(sweep):
        return None
    return record if sweep.destinations(cell).items() <= record.tracked.items() else None


def sent_before(sweep: Sweep, cell: Cell, stage: Stage) -> dict[str, str]:
    """Name of each tracker that got the score that the cell has at this stage → checksum of where it sent the score.

    Empty if the cell has not reached this stage since its last sample, or was scored otherwise. Raises `StoreError` for
    a damaged record.
    """
    record = read(sweep, cell)
    return {} if record is None or record.stage != stage or record.scoring != scoring(sweep) else record.tracked


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


def refusal_in_words(sweep: Sweep, cell: Cell, error: HarnessError) -> str:
    """The reason of a cell whose run folder holds samples of other settings."""
    remedy = f". For new scores, delete {visible(str(sweep.folder(cell)), 200)}, or give the benchmark another `name`"
    return whole_sentences(REFUSED + in_one_line(error.other_settings)) + remedy
