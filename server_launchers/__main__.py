"""Starts one engine in the foreground and keeps it until Ctrl-C.

python -m server_launchers ENGINE MODEL [options] [-- engine flags]
python -m server_launchers vllm Qwen/QwQ-32B --tp 8 --max-model-len 40960

`harness serve` takes the same options; it also keeps servers in the background, lists them and stops them.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any

import click

from server_launchers import isolated
from server_launchers.command_line import EngineCommand, server_options, spec_from
from server_launchers.errors import LaunchError
from server_launchers.spec import ENGINES

_HELP = f"""Start an engine, wait until it works, and keep it until Ctrl-C.

ENGINE is one of {", ".join(ENGINES)}. The words after ` -- ` go to the engine unchanged.
"""


@click.command("server_launchers", cls=EngineCommand, help=_HELP)
@click.argument("engine")
@click.argument("model", default="")
@click.option("--name", help="Name in the state file. Default: from the model.")
@click.option("--dry-run", is_flag=True, help="Print the command line and environment, start nothing.")
@server_options()
def command(
    engine: str, model: str, name: str | None, dry_run: bool, extra_flags: tuple[str, ...], **options: Any
) -> None:
    """Start one server and keep it. Exit status: 2 if it cannot be started, 1 if it ended by itself, 130 after a
    signal."""
    from server_launchers.keeping import supervisor
    from server_launchers.keeping.progress import Heartbeat

    isolated.leave_no_core()
    try:
        spec = spec_from(engine, model, options, extra_flags, name)
        if dry_run:
            for line in supervisor.dry_run(spec):
                click.echo(line)
            return
        # By default SIGTERM and SIGHUP end Python at once. As an exception they leave the `with` block, whose end stops
        # the server.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _leave)
        with supervisor.launch(spec, on_progress=Heartbeat(_say)) as server:
            _say(f"{server.name} serves {server.model} at {' '.join(server.base_urls)}")
            server.wait()
            _say(f"error: the server ended; its log is {server.log}")
            sys.exit(1)
    except LaunchError as error:
        _say(f"error: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    command(prog_name="python -m server_launchers")
