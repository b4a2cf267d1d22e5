"""Every command and every function of `harness` has a step in the data that shows what it does."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Iterator

import click

import harness
from harness.cli.main import cli
from tests.conftest import CHECKOUT
from tests.pins import data
from tests.pins.test_pins import SCENES

ELSEWHERE = {
    "view": "serves pages until it is stopped: tests/viewer",
    "serve stop": "needs a server that runs: tests/server_launchers",
    "serve logs": "needs a server that runs: tests/server_launchers",
    "gate": "draws its samples from a server of a chance: tests/commands/test_gate.py",
    "serve fetch": "downloads: tests/server_launchers",
    "function serve": "starts a server: tests/system/test_python_api.py",
    "function frame": "gives a table of Arrow: tests/exports/test_export.py",
    "function probe": "the same report as the command's, which is pinned: tests/system/test_one_road.py",
}
"""What shows nothing in process and in a moment → why, and where it is held. Their refusals are pinned."""


def commands(command: click.Command, *words: str) -> Iterator[str]:
    """The words of every command below, without the groups."""
    if not isinstance(command, click.Group):
        yield " ".join(words)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from commands(below, *words, name)


def every() -> set[str]:
    """All commands and functions."""
    functions = [name for name in harness.__all__ if inspect.isfunction(getattr(harness, name))]
    return {*commands(cli), *(f"function {name}" for name in functions)}


def pinned(steps: data.Steps) -> set[str]:
    """Commands, with all beginnings of their words, that did what they are for; functions that returned."""
    names = set()
    for key, step in steps.items():
        if key.startswith("harness.") and "refused" not in step:
            names.add(f"function {key.removeprefix('harness.').partition('(')[0]}")
        elif step.get("exit") in (0, 1, 4):  # not a refusal
            words = shlex.split(key)[1:]
            names |= {" ".join(words[:n]) for n in range(1, len(words) + 1)}
    return names


def steps() -> data.Steps:
    """The steps of all scenes."""
    return {key: step for path in data.FOLDER.glob("*.json") for key, step in data.load(path.stem).items()}


def test_every_command_and_every_function_is_pinned() -> None:
    assert every() - pinned(steps()) - ELSEWHERE.keys() == set()


def test_what_is_held_elsewhere_is_there_and_has_no_pin() -> None:
    assert ELSEWHERE.keys() <= every() - pinned(steps())
    assert all((CHECKOUT / reason.rpartition(": ")[2]).exists() for reason in ELSEWHERE.values())


def test_each_file_belongs_to_a_scene() -> None:
    assert {*SCENES, "streams.recorded"} == {path.stem for path in data.FOLDER.glob("*.json")}
