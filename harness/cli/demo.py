"""`harness demo`: the whole path on a real model, with the commands that a user would type."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import click

from harness.cli.help import SpelledCommand
from server_launchers import isolated
from server_launchers.engines.table import EMBEDDED

MODEL = "smollm2-135m"


@click.command("demo", cls=SpelledCommand)
@click.option("--samples", type=click.IntRange(1), default=4, show_default=True, help="Samples per question.")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder. Default: results/demo-<date>-<time>.")
def command(samples: int, out: Path | None) -> None:
    """Start the embedded server, run the demo benchmark, score it in a separate process, report, stop the server.

    Downloads 98 MB of weights once; needs no network afterwards.
    """
    from harness.asking import servers
    from harness.cli.terminal import Terminal

    folder = out or Path("results") / f"demo-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    # All cores, because this client is idle; by default a server leaves one core to its client.
    watcher = Terminal()
    spec = servers.spec(EMBEDDED, MODEL, watcher, threads=os.cpu_count())
    click.echo(f"$ harness serve {EMBEDDED} {MODEL}")
    with servers.launched(spec, watcher) as server:
        url = server.base_urls[0]
        code = _step("run", f"demo:{samples}", "--base-url", url, "--model", server.model, "--out", str(folder))
        code = code or _step("score", str(folder))
        code = code or _step("report", str(folder))
    if code == 0:
        click.echo("What to do next, as it stands:")
        for line in next_lines(folder):
            click.echo(f"  {line}")
    sys.exit(code)


def next_lines(folder: Path) -> list[str]:
    """Commands that can be pasted into any shell: look at the run's samples, then make a run of your own."""
    beside = Path(isolated.PYTHON).parent / "harness"
    harness = shlex.quote(str(beside)) if beside.exists() else "harness"
    run = shlex.quote(str(folder.resolve()))
    return [
        f"{harness} show {run} --wrong",
        f"{harness} view {run}",
        f"{harness} serve {EMBEDDED} {MODEL} --detach",
        f"{harness} run demo:8 --model {MODEL} --limit 10",
    ]


def _step(*argv: str) -> int:
    """Run one command in a process of its own, and print it as a user would type it. Returns its exit code."""
    click.echo(f"$ harness {shlex.join(argv)}")
    return subprocess.run(isolated.command("harness", *argv), check=False).returncode
