"""Whether programs can be run here, by the package that runs them."""

from __future__ import annotations

import pytest

from reasoning_programs import Case, QuestionTests, UnavailableError, bubblewrap, grade_program
from reasoning_programs.sandbox_source import PACKAGES


def why_no_sandbox() -> str:
    """Why no sandbox can be started here, "" if one can."""
    try:
        grade_program("```\npass\n```", QuestionTests(style="stdin", cases=(Case("", ""),)))
    except UnavailableError as error:
        return str(error)
    return ""


NO_SANDBOX = why_no_sandbox()

needs_sandbox = pytest.mark.skipif(bool(NO_SANDBOX), reason=f"no sandbox here: {NO_SANDBOX}")

needs_packages = pytest.mark.skipif(
    bool(NO_SANDBOX) or f"{PACKAGES}/numpy" not in bubblewrap.command(("numpy",)),
    reason="the sandbox's user cannot read the installed packages",
)
