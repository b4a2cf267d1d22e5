"""A benchmark's own verifier: code that a card names, and that is therefore run only where the user trusts it.

A run folder or a card may come from a stranger, and naming a function is enough to have it called with a model's
text. So a verifier must be the harness's own, or stand in a module that `HARNESS_GRADERS` names.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable
from typing import cast

from harness.core.errors import UsageError
from harness.core.inert import quoted
from harness.core.records import Question

RULES = "rules"
TRUST_VARIABLE = "HARNESS_GRADERS"
"""Environment variable: modules, separated by commas, whose functions may grade."""

Verifier = Callable[[str, Question], bool]


def require_trusted(questions: Iterable[Question]) -> None:
    """Raises `UsageError` for the first verifier that may not be run; imports nothing."""
    for grader in sorted({question.rules.grader for question in questions} - {RULES}):
        module = grader.partition(":")[0]
        if not _trusted(module):
            raise UsageError(
                f"the grader {quoted(grader)} is code that the benchmark brings along; to let it run, name its module:"
                f" {TRUST_VARIABLE}={quoted(module)}"
            )


def load(grader: str) -> Verifier:
    """The function `package.module:function`. Raises `UsageError` where its module is not trusted."""
    module, _, name = grader.partition(":")
    if not _trusted(module):
        raise UsageError(f"the module {quoted(module)} is not trusted to grade")
    return cast(Verifier, getattr(importlib.import_module(module), name))


def _trusted(module: str) -> bool:
    named = [part.strip() for part in os.environ.get(TRUST_VARIABLE, "").split(",")]
    return module.startswith("harness.") or module in named
