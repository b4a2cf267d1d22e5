"""`harness view`: shows runs on a local page in the browser."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import click

from harness.cli.help import Helping

DEFAULT_PORT = 8765


@click.command("view", cls=Helping)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Port on 127.0.0.1; 0 = any free one. Default: {DEFAULT_PORT}, or any free one where that is taken.",
)
@click.option("--no-open", is_flag=True, help="Open no browser.")
def command(runs: tuple[Path, ...], port: int | None, no_open: bool) -> None:
    """Show RUN..., run folders or folders of them (default: results/), on a page on this machine only.

    The first line printed is its address. The page follows runs that are still going. Ctrl-C ends it.
    """
    from harness.verbs.compare import published_beside
    from harness.verbs.outputs import open_scored
    from harness.verbs.report import run_facts
    from harness.viewer.app import Server
    from harness.viewer.library import Library

    library = Library([open_scored(run).path if run.is_file() else run for run in runs] or [Path("results")])
    library.refresh()

    ports = (DEFAULT_PORT, 0) if port is None else (port,)
    server = Server(library, published=published_beside, facts=run_facts, ports=ports)
    click.echo(server.address)
    n = len(library.runs)
    click.echo(f"{n} run{'' if n == 1 else 's'}. Ctrl-C ends the viewer.")
    if not no_open and _has_screen():
        click.launch(server.address)
    with contextlib.suppress(KeyboardInterrupt):
        server.run()


def _has_screen() -> bool:
    """Whether a browser can be opened here: on Linux, programs that open one print errors where there is no screen."""
    return sys.platform != "linux" or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"))
    )
