"""Programs of tests, graded in the real sandbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.core.errors import UsageError
from harness.extensions.answers.program import bubblewrap
from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.decide import ProgramDecision, decide
from harness.extensions.answers.program.tests_of import Case, ProgramLimits, QuestionTests


def why_no_sandbox() -> str:
    """Why no sandbox can be started here, "" if one can."""
    cell = SandboxCell(bubblewrap)
    try:
        decide(cell, QuestionTests(style="stdin", cases=(Case("", ""),)), "")
    except UsageError as error:
        return str(error)
    finally:
        cell.close()
    return ""


NO_SANDBOX = why_no_sandbox()

needs_sandbox = pytest.mark.skipif(bool(NO_SANDBOX), reason=f"no sandbox here: {NO_SANDBOX}")


@pytest.fixture(scope="module")
def cell() -> Iterator[SandboxCell]:
    """A sandbox that is kept for all tests of a module."""
    cell = SandboxCell(bubblewrap)
    yield cell
    cell.close()


def script(
    cell: SandboxCell, code: str, *cases: tuple[str, str], seconds: float = 2.0, memory_mb: int = 1024
) -> ProgramDecision:
    """The verdict on a whole program."""
    tests = QuestionTests(
        style="stdin", cases=tuple(Case(*case) for case in cases), limits=ProgramLimits(seconds, memory_mb)
    )
    return decide(cell, tests, code)


def called(
    cell: SandboxCell, code: str, *cases: tuple[str, str], function: str = "f", seconds: float = 2.0
) -> ProgramDecision:
    """The verdict on a function by its results."""
    tests = QuestionTests(
        style="calls",
        cases=tuple(Case(*case) for case in cases),
        function=function,
        limits=ProgramLimits(seconds, 1024),
    )
    return decide(cell, tests, code)


def checked(
    cell: SandboxCell, code: str, *checks: str, function: str = "f", setup: str = "", seconds: float = 2.0
) -> ProgramDecision:
    """The verdict on a function by test code."""
    tests = QuestionTests(
        style="checks", checks=checks, function=function, setup=setup, limits=ProgramLimits(seconds, 1024)
    )
    return decide(cell, tests, code)
