"""`harness status`: shows what a run or a sweep is doing, from another terminal.

A running process writes its progress to a file; without that file, the run's other files are read.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from harness.benchmarks.shards import Shard, assign_parts
from harness.cli.json_output import print_json
from harness.commands.imported_runs import open_scored
from harness.core import codec
from harness.core.errors import StoreError
from harness.core.files import open_untrusted, read_at
from harness.core.number_text import count_noun
from harness.core.sanitize import visible
from harness.generation.network.control import progress_of
from harness.generation.run_progress import Progress
from harness.options.display import StatusCommand
from harness.progress.display import ProgressDisplay
from harness.progress.lines import panel, percent, score_text
from harness.progress.running_score import RunningScore, RunningScores
from harness.reports.score_tables import engine_lines
from harness.runs import questions
from harness.runs.engine_pages import read_engine_pages
from harness.runs.journal import stored_keys
from harness.runs.layout import (
    RESULTS,
    SHARDS,
    STATUS,
    Holder,
    RunFolder,
    holder_of,
    readable,
    runs_below,
    runs_in,
)
from harness.runs.manifest import Manifest
from harness.runs.sweep_cell import sweep_around
from harness.scoring.engine_metrics import EngineMetrics, engine_metrics
from harness.sweeps import record as cell_records
from harness.sweeps.record import SeenSweep

WATCH_SECONDS = 1.0
"""Number of seconds between updates of a watched run."""

ALL_ROWS = 1000
"""Largest number of lines of a status; more than a terminal has, because the lines are not redrawn."""


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a run."""

    run: str
    """Run folder."""
    state: Literal["running", "ending", "silent", "ended"]
    """Run state; "silent" means that a process has locked the run but is not responding."""
    progress: Progress | None
    """Progress reported by the running process; None if no process responds."""
    files: OnDisk | None
    """The run's state on disk; None while a process reports progress."""
    scores: dict[str, RunningScore]
    """Score so far, by benchmark."""
    engine: EngineMetrics | None = None
    """The engine's metrics so far; None if the server has no metrics page."""


def carry_out(options: StatusCommand) -> None:
    """Show the status of runs."""
    run, as_json = options.run, options.as_json
    sweep = cell_records.read_sweep(run) if run is not None else None
    states = _states(run, is_sweep=sweep is not None)
    if options.watch and sweep is not None and sweep.running:
        _watch_sweep(sweep.path, as_json)
    elif options.watch:
        watched = next((status for status in states if status.state != "ended"), states[0])
        _watch(RunFolder(Path(watched.run)), as_json)
    elif as_json:
        print_json(states)
    else:
        for line in () if sweep is None else _cells(sweep):
            click.echo(line)
        for number, status in enumerate(states):
            click.echo("\n".join([*([""] if number else []), *lines(status)]))


def _states(run: Path | None, *, is_sweep: bool) -> list[RunStatus]:
    """The states of the runs to show: a run and its shards, or, for a sweep or without a run (None), all runs in
    progress. Raises `StoreError`.
    """
    if run is None or is_sweep:
        return _active_states(run or Path("results"))
    if shards := RunFolder(run).shards():
        return [read_status(folder) for folder in (RunFolder(run), *shards) if folder.manifest.is_file()]
    return [read_status(open_scored(run))]


def read_status(folder: RunFolder) -> RunStatus:
    """Read the progress that a running process reports, or else the run's files. Raises `StoreError`."""
    progress, files = progress_of(folder), None
    state: Any
    if progress is None:
        files = on_disk(folder)
        state, names = "ended" if files.holder is None else "silent", [each.name for each in files.benchmarks]
    else:
        state = "ending" if progress.stopping else "running"
        names = [each.name for each in progress.benchmarks]
    manifest = Manifest.find(folder)
    return RunStatus(
        run=str(folder.path),
        state=state,
        progress=progress,
        files=files,
        scores=RunningScores(folder).current(names),
        engine=None if manifest is None else engine_metrics(read_engine_pages(folder), manifest.model),
    )


def _active_states(results: Path) -> list[RunStatus]:
    """The runs whose processes report their progress, or else the run with the latest log. Raises `StoreError` if there
    is none.

    results: a folder of runs and sweeps, or a sweep folder.
    """
    runs = [*runs_below(results), *(shard for path in results.glob(f"*/{SHARDS}") for shard in runs_in(path))]
    if not runs:
        raise StoreError(f"there is no run in {results.absolute()}. Specify a run folder.")
    if going := [status for _, status in readable(_active_runs(runs), read_status)]:
        return going
    for _, status in readable(newest_first(runs), read_status):
        return [status]  # the first readable one; the remaining runs are skipped
    raise StoreError(f"none of the runs in {results.absolute()} can be read")


def newest_first(runs: Iterable[RunFolder]) -> list[RunFolder]:
    """The runs, the one whose session wrote last first."""
    logs = {run: (run.log if run.log.exists() else run.manifest).stat().st_mtime for run in runs}
    return sorted(logs, key=logs.__getitem__, reverse=True)


def newest_run() -> RunFolder | None:
    """The newest run in `RESULTS` or in the current folder, at most one folder deeper; None if there is none."""
    return next(iter(newest_first([*runs_below(RESULTS), *runs_below(Path())])), None)


def _active_runs(runs: Sequence[RunFolder]) -> list[RunFolder]:
    """The runs whose process reports its progress, sorted by path."""
    # Only runs with a status file are read, because results/ may contain hundreds of finished runs.
    going = [run for run in runs if (run.path / STATUS).exists() and progress_of(run) is not None]
    return sorted(going, key=lambda run: run.path)


# ---- in words


def _cells(sweep: SeenSweep) -> Iterator[str]:
    """Yield the lines on the finished cells of a sweep; none for a folder without cells."""
    if not sweep.cells and not sweep.running:
        return
    stages = Counter("failed" if record.reason else "scored" for record in sweep.cells)
    counts = ", ".join(f"{number} {stage}" for stage, number in stages.items())
    cells = f"cells: {counts}" if counts else "no cell has finished yet"
    yield f"{visible(str(sweep.path))}: sweep {'running' if sweep.running else 'ended'}; {cells}"
    for record in sweep.cells:
        if record.reason:
            yield f"failed: {visible(record.cell, 200)}: {visible(record.reason, 300)}"


def lines(status: RunStatus) -> Iterator[str]:
    """Yield the status as lines that are safe to print."""
    yield f"{visible(status.run)}: {status.state}"
    if status.progress is not None:
        for line in panel(status.progress, shutil.get_terminal_size().columns - 1, ALL_ROWS, status.scores):
            yield "".join(span.text for span in line)
    elif status.files is not None:
        yield from _from_files(RunFolder(Path(status.run)), status.files, status.scores)
    if status.engine is not None:
        yield from map(visible, engine_lines(status.engine))
        # While requests are in progress, an engine that counts finished requests reports fewer tokens than the client.
        yield from (f"  {visible(remark)}" for remark in status.engine.remarks if status.state == "ended")


def _from_files(folder: RunFolder, files: OnDisk, scores: dict[str, RunningScore]) -> Iterator[str]:
    """Yield the lines, made from its files, of a run whose process reports no progress or has ended.

    scores: the accuracy so far, by benchmark.
    """
    for benchmark in files.benchmarks:
        right = f" · {score_text(scores[benchmark.name], benchmark.done)}" if benchmark.name in scores else ""
        share = percent(benchmark.done, benchmark.total)
        yield (
            f"{visible(benchmark.name, 60)}  {benchmark.done}/{count_noun(benchmark.total, 'sample')} ({share}){right}"
        )
    if files.holder is not None:
        yield (
            f"{files.holder} is using the run but reports no progress: it is starting up, shutting down, or running a "
            "different version of the harness"
        )
    for event in files.session:
        when = visible(str(event.get("time", "")), 40)
        if event.get("event") == "session_started":
            yield f"last session began {when}"
        else:
            why = visible(str(event.get("stopped") or ""), 300)
            reason = f": {why}" if why else ""
            yield f"it ended {when}{reason}; {event.get('failures', 0)} failed requests"
    # A session that ends normally records its end.
    if files.holder is None and files.session and files.session[-1].get("event") == "session_started":
        sweep = sweep_around(folder)
        again = (
            "Run the same `harness run` command again to resume"
            if sweep is None
            else f"Run the same `harness sweep` command again to resume the sweep in {visible(str(sweep))}"
        )
        yield f"it ended without recording why: it was killed, or its machine crashed. {again}"


# ---- --watch


def _watch_sweep(path: Path, as_json: bool) -> None:
    """Watch the runs of a sweep one after another until the sweep's process has ended."""
    while (sweep := cell_records.read_sweep(path)) is not None and sweep.running:
        for run in _active_runs(runs_in(path))[:1]:
            _watch(run, as_json)
        time.sleep(WATCH_SECONDS)


def _watch(folder: RunFolder, as_json: bool) -> None:
    """Show the status every second until the run ends."""
    display = ProgressDisplay(folder)
    try:
        while True:
            status = read_status(folder)
            if as_json:
                click.echo(codec.encode(status).decode())
            elif status.progress is not None:
                display(status.progress)
            if status.state == "ended":
                break
            time.sleep(WATCH_SECONDS)
    finally:
        display.close()
    if not as_json:
        for line in lines(status):
            click.echo(line)


# ---- the state of a run according to its files


LOG_BYTES = 4 * 1024 * 1024
"""Number of bytes at the end of the log that are searched for the start and end of the last session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Stored and planned sample counts for one benchmark."""

    name: str
    """Name of the benchmark."""
    done: int
    """Number of samples on disk."""
    total: int
    """Number of planned samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDisk:
    """A run's state on disk."""

    model: str
    """Name of the model."""
    benchmarks: tuple[Stored, ...]
    """Samples by benchmark."""
    holder: Holder | None
    """The process that is writing to the run; None if there is none."""
    session: tuple[dict[str, Any], ...]
    """The last session's `session_started` and `session_ended` log entries, if found near the end of the log."""


def on_disk(folder: RunFolder) -> OnDisk:
    """Read a run's progress and its current writer without changing any file. Raises `StoreError`."""
    manifest = Manifest.load(folder)
    holder = holder_of(folder)
    return OnDisk(
        model=manifest.model,
        benchmarks=tuple(_count_stored(folder, manifest, name) for name in manifest.benchmarks),
        holder=holder,
        session=_last_session(folder),
    )


def _count_stored(folder: RunFolder, manifest: Manifest, name: str) -> Stored:
    """Count the stored and the planned samples of one benchmark."""
    files, record = folder.benchmark(name), manifest.benchmarks[name]
    plan = record.plan
    ids = [question.question_id for question in questions.read_planned(files, record)]
    keys = stored_keys(files)
    if folder.part is not None and (run := folder.run_of_shard()) is not None:
        # The plan is the run's, and a shard requests nothing that the run already has.
        with contextlib.suppress(ValueError):  # a folder with a name like 9-of-8
            shard = Shard.parse(folder.part)
            ids = [each for each, part in assign_parts(name, ids, shard.of).items() if part == shard.number]
        for key in stored_keys(run.benchmark(name)):
            keys.add(key)
    return Stored(name=name, done=plan.n_stored(keys, ids), total=plan.total(ids))


def _last_session(folder: RunFolder) -> tuple[dict[str, Any], ...]:
    """The log entries of the last session: its start and, if it ended normally, its end.

    The start is missing if it is not within the last `LOG_BYTES` of the log.
    """
    events: list[dict[str, Any]] = []
    for line in _end_of(folder.log):
        if b'"session_started"' in line or b'"session_ended"' in line:
            # The first line may be cut off, and a crash may have left half a line at the end.
            with contextlib.suppress(codec.DecodeError):
                event = codec.decode(line, dict[str, Any])
                if event.get("event") == "session_started":
                    events = [event]  # the entries so far belong to an earlier session
                elif event.get("event") == "session_ended":
                    events.append(event)
    return tuple(events[:2])  # any more are ends of later sessions whose start is a broken line


def _end_of(path: Path) -> list[bytes]:
    """The last lines of a file; the first of them may be incomplete. Empty if the file cannot be read."""
    try:
        with open_untrusted(path) as file:
            size = os.fstat(file.fileno()).st_size
            return read_at(file.fileno(), LOG_BYTES, max(0, size - LOG_BYTES)).splitlines()
    except OSError:
        return []
