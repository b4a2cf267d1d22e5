"""Programs of tests, graded in the real sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.extensions.answers.program import bubblewrap
from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.grading import ProgramDecision, decide
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
    return _decided(cell, code, ProgramLimits(seconds, memory_mb), style="stdin", cases=_cases(cases))


def _decided(cell: SandboxCell, code: str, limits: ProgramLimits, **tests: Any) -> ProgramDecision:
    return decide(cell, QuestionTests(limits=limits, **tests), code)


def _cases(pairs: tuple[tuple[str, str], ...]) -> tuple[Case, ...]:
    return tuple(Case(*pair) for pair in pairs)


def called(cell: SandboxCell, code: str, *cases: tuple[str, str], seconds: float = 2.0) -> ProgramDecision:
    """The verdict on a function `f` by its results."""
    return _decided(cell, code, ProgramLimits(seconds, 1024), style="calls", function="f", cases=_cases(cases))


def checked(cell: SandboxCell, code: str, *checks: str, setup: str = "", seconds: float = 2.0) -> ProgramDecision:
    """The verdict on a function `f` by test code."""
    limits = ProgramLimits(seconds, 1024)
    return _decided(cell, code, limits, style="checks", function="f", checks=checks, setup=setup)
