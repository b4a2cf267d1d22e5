"""`harness view`: shows runs on a local page in the browser."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import click

from harness.commands.compare import picture, published_beside
from harness.commands.imported_runs import open_scored
from harness.commands.report import run_facts
from harness.options.display import DEFAULT_PORT, ViewCommand
from harness.viewer.app import ViewerServer
from harness.viewer.pages import Library


def carry_out(options: ViewCommand) -> None:
    """Serve the page until Ctrl-C."""
    runs = [open_scored(run).path if run.is_file() else run for run in options.runs]
    library = Library(runs or [Path("results")])
    library.refresh()
    ports = (DEFAULT_PORT, 0) if options.port is None else (options.port,)
    server = ViewerServer(library, published=published_beside, facts=run_facts, picture=picture, ports=ports)
    click.echo(server.address)
    n = len(library.runs)
    click.echo(f"{n} run{'' if n == 1 else 's'}. Press Ctrl-C to stop.")
    # Everyone on the machine can read a browser's command line, so the address is in a page that only this user can
    # read.
    with tempfile.TemporaryDirectory(prefix="harness-view-") as folder, contextlib.suppress(KeyboardInterrupt):
        if not options.no_open and _has_screen():
            page = Path(folder, "open.html")
            page.touch(mode=0o600)
            page.write_text(f'<meta http-equiv="refresh" content="0; url={server.address}">')
            click.launch(page.as_uri())
        server.run()


def _has_screen() -> bool:
    """Whether a browser can be opened here. On Linux without a display, programs that open a browser print errors."""
    return sys.platform != "linux" or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"))
    )
