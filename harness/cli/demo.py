"""`harness doctor --demo`: goes through the whole workflow on a real model, with the commands that a user would
type.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import click

from harness.core.cores import granted_cores
from harness.core.files import real
from server_launchers import isolated
from server_launchers.engines.table import EMBEDDED

MODEL = "smollm2-135m"
SAMPLES = 4
FOLDER = Path("results/demo")

STOPPED = 128 + signal.SIGINT
"""Exit code of a command stopped by Ctrl-C; SIGTERM gives a higher one."""


def run_demo() -> int:
    """Start the embedded server, run the demo benchmark, score it in a separate process, report, and stop the server.

    Calling it again resumes a stopped demo. Returns the exit code.
    """
    from harness.cli.terminal import Terminal
    from harness.generation.runner import RESUME
    from harness.preparing.server_start import launch_server, spec_of
    from harness.runs.layout import RunFolder

    RunFolder(FOLDER).create()  # before the server, so that an unwritable folder does not cost a server start
    watcher, ran = Terminal(), 0
    load, n_cores = os.getloadavg()[0], granted_cores()
    if load > n_cores:
        click.echo(f"This machine is busy (load {load:.1f} on {n_cores} cores): the demo will take over a minute.")
    # All cores, because this client is idle; by default a server leaves one core to its client.
    spec = spec_of(EMBEDDED, MODEL, watcher, threads=n_cores)
    click.echo(f"$ harness serve {EMBEDDED} {MODEL}")
    try:
        with launch_server(spec, watcher) as server:
            where = ("--base-url", server.base_urls[0], "--model", server.model, "--out", str(FOLDER))
            code = ran = _step("run", f"demo:{SAMPLES}", *where)
            code = code or _step("score", str(FOLDER))
            code = code or _step("report", str(FOLDER))
    except KeyboardInterrupt:
        code = STOPPED
    if code >= STOPPED:
        # A stopped run has already printed how to resume.
        how = "" if ran >= STOPPED else RESUME
        click.echo(f"Stopped the demo and its server.{how}", err=True)
    if code == 0:
        click.echo("Next, paste these commands to run your own questions and to read this run's samples:")
        for line in next_lines(FOLDER):
            click.echo(f"  {line}")
    return code


def program() -> str:
    """Return the shell word that starts this program: the path of the script next to this Python, or `harness` if PATH
    leads to this script.

    Also `harness` if there is no such script, since no path is known then.
    """
    script = Path(isolated.PYTHON).parent / "harness"
    on_path = shutil.which("harness")
    if not script.exists() or (on_path is not None and script.samefile(on_path)):
        return "harness"
    return shlex.quote(str(script))


def next_lines(folder: Path) -> list[str]:
    """Commands to paste into any shell: a run of the user's own questions, then a look at the demo's samples in
    `folder`.
    """
    from harness.benchmarks.catalog import shipped_folder

    harness, run = program(), shlex.quote(str(real(folder)))
    table = shlex.quote(str(real(shipped_folder()) / "templates" / "questions.csv"))
    return [
        f"cp {table} my_questions.csv",
        f"{harness} serve {EMBEDDED} {MODEL} --detach",
        f"{harness} run --data my_questions.csv --samples 4 --max-tokens 256",
        f"{harness} show {run} --wrong",
        f"{harness} view {run}",
    ]


def _step(*argv: str) -> int:
    """Run one command in a separate process, and print it as a user would type it. Returns its exit code."""
    click.echo(f"$ harness {shlex.join(argv)}")
    # Ctrl-C also reaches the child process, which ends by itself. This process continues in order to stop the server.
    usual = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run(isolated.command("harness", *argv), check=False).returncode
    finally:
        signal.signal(signal.SIGINT, usual)
