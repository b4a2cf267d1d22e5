"""One engine in the foreground until Ctrl-C, for `python -m server_launchers.<engine>`.

Every field of the spec is an option (`--max-sequences 64`, `--no-prefix-caching`); what follows ` -- ` goes to the
engine as it stands.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from types import FrameType
from typing import Any, get_args

from pydantic import ValidationError

from server_launchers.errors import LaunchError
from server_launchers.keeping import supervisor
from server_launchers.keeping.supervisor import Progress
from server_launchers.spec import ServerSpec

_NOT_OPTIONS = {"engine", "model", "extra_flags"}
_OTHER_NAMES = {"context": ("--max-model-len",), "api_key_env": ("--server-key-env",), "seed": ("--server-seed",)}
"""As `harness serve` calls them, whose commands also have a client's key, seed and context."""


def main(engine: str, argv: list[str] | None = None) -> int:
    """Serve until a signal; 2 with a message where the server cannot be started, 1 where it ended by itself."""
    try:
        spec, dry = parse(engine, sys.argv[1:] if argv is None else argv)
        if dry:
            sys.stdout.write("".join(f"{line}\n" for line in supervisor.dry_run(spec)))
            return 0
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _leave)
        with supervisor.launch(spec, on_progress=_Heartbeat()) as server:
            sys.stderr.write(f"{server.name} serves {server.model} at {' '.join(server.base_urls)}\n")
            while (known := server.state) is None or known.status != "exited":
                time.sleep(1)
            sys.stderr.write(f"error: the server ended; its log is {server.log}\n")
            return 1
    except LaunchError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130


def parse(engine: str, argv: list[str]) -> tuple[ServerSpec, bool]:
    """The spec that a command line describes, and whether it asks for a dry run."""
    own, extra = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    options = argparse.ArgumentParser(prog=f"python -m server_launchers.{engine}", allow_abbrev=False)
    options.add_argument("model", nargs="?" if engine == "command" else None, default="")
    options.add_argument("--dry-run", action="store_true", help="print the commands and do nothing")
    for name, field in ServerSpec.model_fields.items():
        if name in _NOT_OPTIONS:
            continue
        flags = ["--" + name.replace("_", "-"), *_OTHER_NAMES.get(name, ())]
        kinds = {field.annotation, *get_args(field.annotation)}
        if bool in kinds:
            options.add_argument(*flags, action=argparse.BooleanOptionalAction, default=None)
        elif name == "environment":
            options.add_argument("--env", metavar="NAME=VALUE", action="append", dest=name)
        elif name == "devices":
            options.add_argument(*flags, metavar="ID,ID", dest=name)
        else:
            options.add_argument(*flags, dest=name)
    given: dict[str, Any] = {key: value for key, value in vars(options.parse_args(own)).items() if value is not None}
    dry = given.pop("dry_run")
    if "environment" in given:
        given["environment"] = dict(pair.partition("=")[::2] for pair in given["environment"])
    if "devices" in given:
        given["devices"] = given["devices"].split(",")
    return spec_from(given | {"engine": engine, "extra_flags": extra}), dry


def spec_from(fields: dict[str, Any]) -> ServerSpec:
    """The spec of `fields`; raises LaunchError that names the first option that is wrong."""
    try:
        return ServerSpec.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = "--" + str(first["loc"][0]).replace("_", "-") + ": " if first["loc"] else ""
        raise LaunchError(place + first["msg"].removeprefix("Value error, ")) from None


class _Heartbeat:
    """One line when the phase changes, and one now and then while it does not."""

    EVERY_SECONDS = 15.0

    def __init__(self) -> None:
        self._phase = ""
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.phase != self._phase or progress.seconds >= self._next:
            self._phase = progress.phase
            self._next = progress.seconds + self.EVERY_SECONDS
            sys.stderr.write(f"{progress.seconds:6.0f} s  {progress.phase}\n")


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
