"""What a page says that a command prints is what the command prints, but for its numbers.

Blocks of `console` show a command behind `$` and its output. On the pages below, the runs are made up: samples of known
accuracy. A tutorial has its commands in a block of `sh`, the output in a block of `text` behind it.
"""

from __future__ import annotations

import random
import re
import shlex
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks
from tests.exports.graded_runs import sample, write_run
from tests.system.command import harness


def meaning(line: str) -> str:
    """A line without what differs from one run to the next: numbers, times, how many blanks stand between words."""
    bare = re.sub(r"\[[\d–]+\]|─+", "", line)  # marks of footnotes, rules of tables
    return re.sub(r"[-+<]?\d[\d,.]*", "#", " ".join(bare.split()))


def missing(shown: str, printed: str) -> list[str]:
    """The lines of a page's block that a command did not print, in their order. "…" stands for the rest of a line."""
    rest = iter([meaning(line) for line in printed.splitlines()])
    lines = [meaning(line) for line in shown.splitlines() if line.strip() != "…"]
    found = (
        any(got.startswith(line[:-1].rstrip()) if line.endswith("…") else got == line for got in rest) for line in lines
    )
    return [line for line, there in zip(lines, found, strict=True) if not there]


def made_up(folder: Path, name: str, accuracy: float, seed: int, benchmark: str = "sums", model: str = "m") -> None:
    """A run of 64 samples of each of 30 questions, some hard and some easy."""
    draws, ease = random.Random(f"{name} {seed}"), [random.Random(number).gauss(0, 1.2) for number in range(30)]
    right = [1 / (1 + 2.718 ** (-one - 4.8 * (accuracy - 0.5))) for one in ease]
    texts = [(n, i, n + 1 if draws.random() < right[n] else n + 2) for n in range(30) for i in range(64)]
    samples = [sample(n, i, rf"\boxed{{{value}}}", benchmark, seed=seed + 100 * i + n) for n, i, value in texts]
    identity = {"model": model, "sampling": {"temperature": 0.6, "top_p": 0.95, "max_tokens": 32768}}
    write_run(folder / name, {benchmark: samples}, questions=30, of_each=64, identity=identity, settings={"seed": seed})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs that the pages name."""
    folder = tmp_path_factory.mktemp("made-up")
    for name, accuracy, seed in (("base", 0.55, 7), ("tuned", 0.65, 8), ("compressed", 0.55, 9)):
        made_up(folder, name, accuracy, seed)
    made_up(folder, "qwq", 0.69, 7, "aime24", "Qwen/QwQ-32B")
    return folder


SHOWN = [
    block
    for name in ("README.md", "docs/deciding.md", "docs/grading.md", "docs/statistics.md")
    for block in blocks(ROOT / name, "console")
]


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: f"{block.page.stem}-{block.line}")
def test_the_output_on_the_page_is_what_the_command_prints(block: Block, runs: Path) -> None:
    command, _, output = block.text.partition("\n")
    result = harness(runs, *shlex.split(command.removeprefix("$ harness ")))
    assert missing(output, result.out) == [], result.out


def test_a_line_that_is_no_more_printed_would_be_seen() -> None:
    printed = "sums: 55.6% over 30 questions\n  same questions   -15.5 to -3.2   worse\n"
    assert missing("sums: 1.0% over 2 questions\n…\n same questions 1 to 2 worse", printed) == []
    assert missing("sums: 1.0% over …\n same questions 1 to 2 better", printed) == ["same questions # to # better"]
