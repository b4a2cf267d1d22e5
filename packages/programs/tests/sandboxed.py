"""What the tests share: programs graded in the real sandbox, and waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reasoning_programs import bubblewrap
from reasoning_programs.cells import SandboxCell
from reasoning_programs.errors import LostError
from reasoning_programs.grading import ProgramDecision, decide
from reasoning_programs.sandbox_source import PACKAGES
from reasoning_programs.tests_of import Case, ProgramLimits, QuestionTests

PATIENCE_SECONDS = 240
"""Longest wait for an event that takes a moment on a quiet machine."""


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until the condition holds; `what` is waited for."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE_SECONDS} s in vain for {what}"
        time.sleep(0.02)


def why_no_sandbox() -> str:
    """Why no sandbox can be started here, "" if one can."""
    cell = SandboxCell(bubblewrap)
    try:
        decide(cell, QuestionTests(style="stdin", cases=(Case("", ""),)), "")
    except LostError as error:
        return str(error)
    finally:
        cell.close()
    return ""


NO_SANDBOX = why_no_sandbox()

needs_sandbox = pytest.mark.skipif(bool(NO_SANDBOX), reason=f"no sandbox here: {NO_SANDBOX}")

needs_packages = pytest.mark.skipif(
    bool(NO_SANDBOX) or f"{PACKAGES}/numpy" not in bubblewrap.command(("numpy",)),
    reason="the sandbox's user cannot read the installed packages",
)


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
