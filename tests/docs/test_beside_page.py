"""The page beside other tools shows the commands and the task files that `make bench-beside` uses."""

from __future__ import annotations

import shlex

import pytest

from bench import beside
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "beside.md").read_text("utf-8")
LINES = [line.strip() for line in PAGE.splitlines()]


@pytest.mark.parametrize("tool", beside.COMMANDS)
def test_the_commands_are_those_of_the_measurement(tool: str) -> None:
    for command in beside.COMMANDS[tool]:
        typed = shlex.join(command.format(bin="BIN", url="http://127.0.0.1:PORT").split()).replace("BIN/", "")
        assert typed in LINES


@pytest.mark.parametrize("task", [beside.INSPECT_TASK, beside.LM_EVAL_TASK])
def test_the_task_files_are_those_of_the_measurement(task: str) -> None:
    assert [line for line in task.splitlines() if line.strip() not in LINES] == []
