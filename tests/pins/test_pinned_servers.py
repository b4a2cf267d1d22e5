"""Pins of 284 servers: the options of `harness serve`, and the arguments and variables of each process they start."""

from __future__ import annotations

import os
import re
import shlex
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from server_launchers.machine import accelerators, environments, programs
from tests.pins.held import hold, read_pins
from tests.pins.stage import alone
from tests.system.command import harness

CHECKOUT = Path(__file__).resolve().parents[2]
SERVERS = Path(__file__).with_name("servers.jsonl")
"""Options → [{"argv", "environment"} of each process], or {"refused": the option at fault}."""

VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
OPTION = re.compile(r"(?<=^harness: )`?([a-z][a-z_]*)`?(?=[:=])|(--[a-z][a-z-]*)")


def started(folder: Path, options: str) -> Any:
    """What these options give, by the dry run."""
    printed = harness(folder, "serve", *shlex.split(options), extra={"SERVER_KEY": "sk-of-the-server"})
    if printed.code:
        lines = [line for line in printed.err.splitlines() if "Try 'harness" not in line]
        named = OPTION.search(" ".join(lines))
        return {"refused": named and (named[2] or f"--{named[1].replace('_', '-')}")}
    return [process(line) for line in printed.out.splitlines()]


def process(line: str) -> dict[str, Any]:
    """The arguments and variables of a line for the shell."""
    words, environment = shlex.split(line), {}
    while words and (variable := VARIABLE.fullmatch(words[0])):
        environment[variable[1]] = variable[2]
        words.pop(0)
    # Of a file of the checkout, or of the interpreter that runs it, its name; the home is `~`.
    words = [Path(word).name if word.startswith((sys.prefix, str(CHECKOUT))) else word for word in words]
    words = [word.replace(os.environ["HOME"], "~") for word in words]
    return {"argv": words, "environment": environment} if environment else {"argv": words}


@pytest.mark.slow
def test_every_server_starts_with_the_pinned_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each interpreter is asked once what is installed in it, and the machine once for its devices.
    cached = cache(programs.ask)
    for module in (accelerators, environments):
        monkeypatch.setattr(module, "ask", cached)
    with alone(tmp_path):
        hold(SERVERS, {options: started(tmp_path, options) for options in read_pins(SERVERS)})
