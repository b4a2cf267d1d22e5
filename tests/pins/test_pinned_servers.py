"""Pins of 290 servers: the options of `harness serve`, and the arguments and variables of each process they start.

`python -m tests.pins.test_pinned_servers` plays the stored options anew, writes what they give, and prints what moved.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.pins.meaning import differences
from tests.pins.stage import alone, refusal, run_command

SPECS = Path(__file__).with_name("servers.jsonl")
"""A line a server: {"serve": options, "processes": [{"argv", "environment"}]}, or "refused": the option at fault."""

VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
OPTION = re.compile(r"--[a-z][a-z-]*")


def started(words: list[str]) -> dict[str, Any]:
    """What these options give, by the dry run."""
    printed = run_command(["serve", *words])
    if printed.code:
        return {"serve": words, "refused": next(iter(OPTION.findall(" ".join(refusal(printed.err)))), None)}
    return {"serve": words, "processes": [process(line) for line in printed.out.splitlines()]}


def process(line: str) -> dict[str, Any]:
    """The arguments and variables of a line for the shell."""
    words, environment = shlex.split(line), {}
    while words and (variable := VARIABLE.fullmatch(words[0])):
        environment[variable[1]] = variable[2]
        words.pop(0)
    return {"argv": words, "environment": environment} if environment else {"argv": words}


def played(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(lines as they are pinned, lines as they are now)."""
    pinned = [json.loads(line) for line in SPECS.read_text("utf-8").splitlines()]
    with alone(folder):
        os.environ["SERVER_KEY"] = "sk-of-the-server"
        return pinned, [started(line["serve"]) for line in pinned]


def by_name(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The lines by their options, for a difference that names the server."""
    return {shlex.join(line["serve"]): line for line in lines}


@pytest.mark.slow
def test_every_server_starts_with_the_pinned_arguments(tmp_path: Path) -> None:
    pinned, now = played(tmp_path)
    moved = differences(by_name(pinned), by_name(now))
    assert not moved, "\n".join(moved)


def main() -> None:
    """Pin what the stored options give."""
    with tempfile.TemporaryDirectory() as folder:
        pinned, now = played(Path(folder).resolve())
    SPECS.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in now), "utf-8")
    sys.stdout.write("".join(f"{line}\n" for line in differences(by_name(pinned), by_name(now))))


if __name__ == "__main__":
    main()
