"""`harness demo`: the whole path on a real model, with the commands that a user would type."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import click

from harness.cli.help import SpelledCommand
from server_launchers import isolated
from server_launchers.engines.table import EMBEDDED

MODEL = "smollm2-135m"
SAMPLES = 4
"""Number of samples per question if the user gives none."""

RESULTS = Path("results")
_NAMED = f"demo-{'[0-9]' * 8}-{'[0-9]' * 6}"
"""Pattern of the names that the demo gives its run folders."""

STOPPED = 128 + signal.SIGINT
"""Exit code of a command that Ctrl-C ended. Commands that SIGTERM ended have a higher one."""


@click.command("demo", cls=SpelledCommand)
@click.option("--samples", type=click.IntRange(1), default=SAMPLES, show_default=True, help="Samples per question.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Run folder. Default: the newest results/demo-<date>-<time> that is not complete, or a new one.",
)
def command(samples: int, out: Path | None) -> None:
    """Start the embedded server, run the demo benchmark, score it in a separate process, report, stop the server.

    Downloads 98 MB of weights once; needs no network afterwards.
    """
    from harness.asking import servers
    from harness.cli.terminal import RESUMED_BY, Terminal
    from harness.runs.layout import RunFolder

    folder = out or _unfinished_run(samples) or RESULTS / f"demo-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    # All cores, because this client is idle; by default a server leaves one core to its client.
    watcher = Terminal()
    more = f" --samples {samples}" if samples != SAMPLES else ""
    # The server of a resumed demo has another address, so the run's own command would be of no use.
    again = os.environ[RESUMED_BY] = f"{program()} demo{more} --out {shlex.quote(str(folder))}"
    RunFolder(folder).create()  # before the server: a folder that cannot be written must not cost its start
    ran = 0
    spec = servers.spec(EMBEDDED, MODEL, watcher, threads=os.cpu_count())
    click.echo(f"$ harness serve {EMBEDDED} {MODEL}")
    try:
        with servers.launched(spec, watcher) as server:
            where = ("--base-url", server.base_urls[0], "--model", server.model, "--out", str(folder))
            # The fingerprint would take 10 s on two cores, before anything is to be seen.
            code = ran = _step("run", f"demo:{samples}", *where, "--no-fingerprint")
            code = code or _step("score", str(folder))
            code = code or _step("report", str(folder))
    except KeyboardInterrupt:
        code = STOPPED
    if code >= STOPPED:
        # A run that was stopped has said how to go on.
        how = "" if ran >= STOPPED else f" To go on: {again}"
        click.echo(f"Stopped, and the server with it.{how}", err=True)
    if code == 0:
        click.echo("Commands to paste next: ask a table of your own questions, then read this run's samples:")
        for line in next_lines(folder):
            click.echo(f"  {line}")
    sys.exit(code)


def program() -> str:
    """What a shell starts this program by: `harness` if it is on the path, else the program's own path."""
    beside = Path(isolated.PYTHON).parent / "harness"
    on_path = shutil.which("harness")
    named = not beside.exists() or (on_path is not None and beside.samefile(on_path))
    return "harness" if named else shlex.quote(str(beside))


def next_lines(folder: Path) -> list[str]:
    """Commands that can be pasted into any shell: a run of one's own questions, then the samples of this run."""
    from harness.benchmarks.catalogue import shipped_folder

    harness, run = program(), shlex.quote(str(folder.resolve()))
    table = shlex.quote(str(shipped_folder().resolve() / "templates" / "questions.csv"))
    return [
        f"cp {table} my_questions.csv",
        f"{harness} serve {EMBEDDED} {MODEL} --detach",
        f"{harness} run --data my_questions.csv --samples 4 --max-tokens 256",
        f"{harness} show {run} --wrong",
        f"{harness} view {run}",
    ]


def _step(*argv: str) -> int:
    """Run one command in a process of its own, and print it as a user would type it. Returns its exit code."""
    click.echo(f"$ harness {shlex.join(argv)}")
    # A Ctrl-C reaches the child process, too, which ends by itself. This process goes on, to stop the server after it.
    usual = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run(isolated.command("harness", *argv), check=False).returncode
    finally:
        signal.signal(signal.SIGINT, usual)


def _unfinished_run(samples: int) -> Path | None:
    """The folder of the newest demo run if it is not complete and has this number of samples a question, or none at all
    yet; else None.
    """
    from harness.core.errors import HarnessError
    from harness.runs.going import on_disk
    from harness.runs.layout import RunFolder
    from harness.runs.manifest import Manifest

    newest = max((path for path in RESULTS.glob(_NAMED) if path.is_dir()), default=None)
    if newest is None:
        return None
    folder = RunFolder(newest)
    if not folder.has_samples():  # Ended before its first sample, it fits any number of samples.
        return newest
    try:
        plans = [record.plan.samples for record in Manifest.load(folder).benchmarks.values()]
        missing = sum(stored.total - stored.done for stored in on_disk(folder).benchmarks)
    except HarnessError:
        return None
    return newest if missing and plans == [samples] else None
