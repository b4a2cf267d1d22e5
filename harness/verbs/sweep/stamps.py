"""The stamp of a complete cell, and the checksum of a server's entry: when a cell has nothing left to do."""

from __future__ import annotations

import hashlib
from pathlib import Path

from harness.asking.options.run import RunOptions
from harness.core.codec import digest
from harness.core.files import open_named
from harness.verbs.sweep.cells import Cell, ServerGroup, Sweep
from harness.verbs.sweep.record import CellRecord

_NO_MATTER = (
    "header", "api_key_env", "concurrency",
    "rpm", "attempts", "timeout", "prices",
    "out", "transport", "budget_tokens", "budget_usd", "canary",
)  # fmt: skip
"""Options that change no sample: a cell stays done when they change."""


def stamp(sweep: Sweep, cell: Cell) -> str:
    """Checksum of what decides the cell's samples and scores, but for its server, and of the samples that are stored;
    empty if the cell has no scores.
    """
    sizes = [(path.name, path.stat().st_size) for path in sweep.folder(cell).glob("*/samples.*")]
    if not any(sweep.folder(cell).glob("*/scores.json")):
        return ""
    options = {name: value for name, value in cell.options.plain.items() if name not in _NO_MATTER}
    judge = None if sweep.judge is None else sweep.judge.plain
    return digest([options, _contents(cell.options), sweep.score.plain, judge, sorted(sizes)])


def server(group: ServerGroup) -> str:
    """Checksum of the file's entry of the server; where a server runs and what it is called change no sample."""
    return digest(
        {name: value for name, value in (group.spec or {}).items() if name not in ("port", "devices", "name")}
    )


def is_whole(sweep: Sweep, cell: Cell, record: CellRecord | None) -> bool:
    """Whether the cell has all samples that the sweep plans now, and scores of them."""
    return record is not None and bool(record.done) and record.done == stamp(sweep, cell)


def _contents(options: RunOptions) -> list[str]:
    """Checksums of the files (questions, cards) that the options name; an empty one for a benchmark's name."""
    checksums = []
    for path in filter(None, (options.data, *options.benchmarks)):
        try:
            with open_named(Path(path)) as file:
                checksums.append(hashlib.file_digest(file, "sha256").hexdigest())
        except OSError:  # A benchmark's name is no file; the name itself stands in the options.
            checksums.append("")
    return checksums
