"""Whether a cell of a sweep has something left to do, according to its record and its run folder."""

from __future__ import annotations

from pathlib import Path

from harness.core.codec import digest
from harness.core.errors import StoreError
from harness.core.files import checksum
from harness.options.run import RunOptions
from harness.preparing.run_questions import RunQuestions
from harness.runs import Manifest, RunFolder
from harness.runs.layout import BenchmarkFolder
from harness.scoring.score import Score
from harness.sweeps import record
from harness.sweeps.plan import Cell, Sweep
from harness.sweeps.record import CellRecord


def is_incomplete(sweep: Sweep, cell: Cell) -> bool:
    """Whether the cell still has to be sampled, scored or sent to a tracker.

    If the cell's options do not name a model, only the running server can tell whether it still serves the same one.
    """
    return cell.options.model is None or not is_done(sweep, cell)


def is_done(sweep: Sweep, cell: Cell) -> bool:
    """Whether the cell has all its samples and complete scores, and all trackers have received these."""
    stored = record.read(sweep.out, cell.name)
    if stored is None or stored.reason:
        return False
    return is_whole(sweep, cell, stored) and {*sweep.track} <= {*stored.sent} and not is_unread(sweep, cell, stored)


def is_unread(sweep: Sweep, cell: Cell, stored: CellRecord) -> bool:
    """Whether the cell's server still has to read its base's replies. stored: the cell's record."""
    return stored.read != reading_stamp(sweep, cell) and cell.name in sweep.read_cells


def has_samples(sweep: Sweep, cell: Cell, questions: RunQuestions) -> bool:
    """Whether the cell's run plans the samples for these questions and has all of them. Raises `StoreError`."""
    folder = RunFolder(sweep.folder(cell))
    manifest = Manifest.find(folder)
    for question_set in questions.sets:
        name, ids = question_set.name, list(question_set.ids)
        stored = None if manifest is None else manifest.benchmarks.get(name)
        if stored is None or stored.plan != questions.benchmarks[name].plan(
            None if len(ids) == question_set.n_all else ids
        ):
            return False
    return questions.are_sampled(folder)


_NO_MATTER = (
    *("serve", "header", "api_key_env", "transport", "concurrency", "rate", "rpm", "attempts", "timeout", "out"),
    *("wait", "prices", "budget_tokens", "budget_usd", "canary"),
)
"""Options that do not affect samples: a cell stays done if they change. Changes of the server are detected by
`server_stamp`.
"""


def stamp(sweep: Sweep, cell: Cell) -> str:
    """Checksum of everything that determines the cell's samples and scores, except its server, and of the stored
    samples; empty if the cell has no readable scores.
    """
    sizes = [(path.name, path.stat().st_size) for path in sweep.folder(cell).glob("*/samples.*")]
    scored = [path.parent for path in sweep.folder(cell).glob("*/scores.json")]
    try:
        if not any(Score.load(BenchmarkFolder(folder.name, folder)) for folder in scored):
            return ""
    except StoreError:
        return ""
    options = {name: value for name, value in cell.options.plain.items() if name not in _NO_MATTER}
    judge = None if sweep.judge is None else sweep.judge.plain
    return digest([options, _contents(cell.options), sweep.score.plain, judge, sorted(sizes)])


def server_stamp(cell: Cell) -> str:
    """Checksum of the server to start, without its location and name, which do not affect samples."""
    serve = cell.options.serve or {}
    return digest({name: value for name, value in serve.items() if name not in ("port", "devices", "name")})


def reading_stamp(sweep: Sweep, cell: Cell) -> str:
    """Checksum of what determines the cell's reading of its base's replies: which replies are read and how many, its
    server, whether the base's server has read them, and the stored samples of both cells; empty if it reads none.
    """
    if (base := sweep.read_cells.get(cell.name)) is None:
        return ""
    paths = {path for name in (base, cell.name) for path in (sweep.out / name).glob("*/samples.*")}
    sizes = sorted((str(path.relative_to(sweep.out)), path.stat().st_size) for path in paths)
    is_read = base == cell.name or has_read(sweep, base)
    return digest([base, sweep.likelihood, server_stamp(cell), sizes, is_read])


def has_read(sweep: Sweep, base: str) -> bool:
    """Whether the server of this base cell has read its own replies."""
    stored = record.read(sweep.out, base)
    return stored is not None and stored.likelihood is not None


def is_whole(sweep: Sweep, cell: Cell, stored: CellRecord) -> bool:
    """Whether the cell has all samples that the sweep currently plans, and scores for them. stored: its record."""
    return bool(stored.done) and stored.done == stamp(sweep, cell)


def _contents(options: RunOptions) -> list[str]:
    """Checksums of the files (questions, cards) that the options name; empty strings for benchmark names."""
    checksums = []
    for path in filter(None, (options.data, *options.benchmarks)):
        try:
            checksums.append(checksum(Path(path)))
        except OSError:  # A benchmark's name is not a file; the options contain the name itself.
            checksums.append("")
    return checksums
