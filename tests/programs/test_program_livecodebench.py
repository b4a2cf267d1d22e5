"""Our verdicts beside those of LiveCodeBench's own testing_util.py, on more than 500 programs.

`make test-programs` runs it; `HARNESS_LIVECODEBENCH` names the file testing_util.py, of a checkout of LiveCodeBench.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.decide import decide
from harness.extensions.answers.program.rows import read
from harness.extensions.answers.program.tests_of import ProgramLimits, QuestionTests
from tests.programs.contest import Submission, submissions
from tests.programs.sandboxed import cell, needs_sandbox

pytestmark = needs_sandbox
__all__ = ["cell"]

TESTING_UTIL = Path(os.environ.get("HARNESS_LIVECODEBENCH", "/nowhere"))
SECONDS = 2

THEIR_SECONDS = 40
"""Its limit for programs that end: it is of wall time, and a busy machine would fail right programs."""

EXPLAINED = {
    "equal to all": "there a class of the program decides what its values equal; here it never does",
}
"""Variant → why the two differ."""


def as_read(submission: Submission) -> QuestionTests:
    """The tests of a submission, by way of a row of LiveCodeBench's form."""
    cases = [{"input": given, "output": output, "testtype": "stdin"} for given, output in submission.cases]
    row = {
        "public_test_cases": json.dumps(cases[:1]),
        "private_test_cases": json.dumps(cases[1:]),
        "starter_code": "",
        "metadata": json.dumps({"func_name": submission.function} if submission.function else {}),
    }
    settings = {"format": "livecodebench", "seconds": SECONDS, "memory_mb": 2048}
    return read(settings, submission.name, row).tests


def _their_seconds(code: str) -> int:
    return SECONDS if "while" in code else THEIR_SECONDS


def test_there_are_more_than_five_hundred() -> None:
    assert len({(s.code, s.cases) for s in submissions()}) > 500
    assert as_read(next(submissions())).limits == ProgramLimits(SECONDS, 2048)


@pytest.mark.skipif(not TESTING_UTIL.exists(), reason="HARNESS_LIVECODEBENCH names no testing_util.py")
def test_verdicts_are_those_of_livecodebench(cell: SandboxCell) -> None:
    listed = list(submissions())
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "livecodebench_driver.py"), str(TESTING_UTIL)],
        input=json.dumps([(s.code, s.cases, s.function, _their_seconds(s.code)) for s in listed]),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    theirs = json.loads(done.stdout)
    differing = []
    for submission, passed in zip(listed, theirs, strict=True):
        decision = decide(cell, as_read(submission), submission.code)
        if decision.outcome != ("correct" if passed else "wrong"):
            differing.append((submission.name, passed, decision.rule, decision.failure))
    unexplained = [item for item in differing if item[0].rpartition(": ")[2] not in EXPLAINED]
    assert unexplained == []
    assert sum(theirs) > 150
    assert len(theirs) - sum(theirs) > 150
