"""What a benchmark's own verifier says of an answer, and the rules under which a verdict records it."""

from __future__ import annotations

from typing import NamedTuple

RULES = "rules"
"""The `grader` of a question that the rules decide, not a verifier."""

RAISED, RETURNED, LATE = "verifier raised ", "verifier returned ", "verifier took longer than "
"""The rule of a grade begins with one of these if the verifier raised an exception, returned no verdict, or was stopped
at the deadline.
"""

LEFT_OPEN = f"{RETURNED}NoneType"
"""The rule of a grade if the verifier returned None, which leaves the answer to a judge."""

ENDED = "verifier ended its process"
"""The rule of a grade if the verifier ended the process that called it."""


class Parts(NamedTuple):
    """How much of an answer is right: `right` of `total` parts, such as cells of a table. All parts must be right for
    the answer to be right. total: at least 1, and the same for each answer to one question.
    """

    right: int
    total: int


class Ruling(NamedTuple):
    """A verifier's result: right, wrong, or undecided (None) if it raised an exception or returned neither a bool nor
    `Parts`; `rule` says which. parts: None unless it returned valid `Parts`.
    """

    correct: bool | None
    rule: str
    steps: tuple[str, ...] = ()
    parts: Parts | None = None


def failure(rule: str) -> str | None:
    """Return what the verifier did in place of a verdict, such as "raised ValueError (mine.py:2)"; None if `rule`, the
    rule of a grade, does not name a verifier's failure.
    """
    return rule.removeprefix("verifier ") if rule.startswith((RAISED, RETURNED, LATE, ENDED)) else None
