"""The page beside other tools shows the commands and the task files that `make bench-beside` uses."""

from __future__ import annotations

import re
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


def lines_to_write(page: str) -> dict[str, tuple[int, int]]:
    """Tool → (lines to write by the table, lines of its printed files that are not empty)."""
    stated = {tool: int(n) for tool, n in re.findall(r"^\| ([\w-]+) [\d.]+ \| (\d+)\b", page, re.MULTILINE)}
    printed = dict.fromkeys(stated, 0)
    tool = ""
    for paragraph in re.split(r"\n\n(?! )", page.partition("## Commands and task files")[2]):
        tool = next((name for name in stated if paragraph.startswith(f"**{name}")), tool)
        if re.match(r"`[\w.]+`:", paragraph):
            before, *lines = paragraph.splitlines()
            printed[tool] += sum(bool(line.strip()) for line in lines)
            printed[tool] += sum(printed[other] for other in stated if f"the task of {other}," in before)
    return {name: (stated[name], printed[name]) for name in stated}


def test_the_lines_to_write_are_those_of_the_printed_files() -> None:
    counts = lines_to_write(PAGE)
    assert len(counts) == len(beside.COMMANDS)
    assert {tool for tool, (stated, printed) in counts.items() if stated != printed} == set()
    # A file of ours would count, too.
    ours = PAGE.replace(
        "    harness score run\n", "    harness score run\n\n`sums.yaml`:\n\n    name: sums\n\n    data: x\n", 1
    )
    assert lines_to_write(ours)["reasoning-harness"] == (0, 2)
