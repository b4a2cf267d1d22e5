"""Describing a question's tests in words, for a person who reads the question."""

from __future__ import annotations

from harness.extensions.answers.program.tests_of import QuestionTests, summary_of

MAX_SHOWN_CHARS = 300
"""Longest test that is shown; a longer one is cut."""

_STYLES = {"stdin": "input and output", "calls": "calls of a function", "checks": "test code"}


def in_a_sentence(reference: str) -> str:
    """The tests of a reference in a sentence: their number and style, their limits, and the first one."""
    tests = summary_of(reference)
    n = tests.n
    limits = f"{tests.limits.seconds:g} s of CPU time, {tests.limits.memory_mb} MB"
    named = f" of {tests.function}" if tests.function else ""
    return f"{n} test{'' if n == 1 else 's'}{named} ({_STYLES[tests.style]}, python; {limits}){_first(tests)}"


def examples(reference: str) -> tuple[str, str] | None:
    """Make a right and a wrong reply for trying a card: the data's solution, and a program that does nothing. None if
    the data have no solution."""
    tests = summary_of(reference)
    if not tests.solution:
        return None
    nothing = f"def {tests.function}(*values): raise NotImplementedError" if tests.function else "pass"
    return f"```python\n{tests.solution}\n```", f"```python\n{nothing}\n```"


def _first(tests: QuestionTests) -> str:
    if tests.cases:
        return f"; the first: {_clip(tests.cases[0].input)} → {_clip(tests.cases[0].output)}"
    return f"; the first: {_clip(tests.checks[0])}" if tests.checks else ""


def _clip(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + " …"
