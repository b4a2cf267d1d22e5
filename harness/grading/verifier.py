"""A benchmark's own verifier: a Python function that a card names to decide answers, run only if the user trusts it.

A run folder or a card may come from a stranger, and a card that names a function could have it called with a model's
text. So a verifier is called only if it is part of the harness, if an installed package offers it as a grader
(examples/plugin_package), or if the environment variable `HARNESS_GRADERS` names its module.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Literal, cast

from harness.core import plugins
from harness.core.errors import UsageError
from harness.core.records import Question
from harness.core.sanitize import quoted, visible
from reasoning_answers import Rules, Verdict
from reasoning_answers.host import LEFT_OPEN
from reasoning_answers.host import Parts as Parts

RULES = Rules().grader
"""The `grader` of a question that the rules decide, not a verifier."""

GIVEN = "given"
"""The `grader` of a question whose verdicts come from another tool's file, and the name that their grades record."""

_RAISED, _RETURNED, _LATE = "verifier raised ", "verifier returned ", "verifier took longer than "
"""The rule of a grade begins with one of these if the verifier raised an exception, returned no verdict, or was stopped
at the deadline.
"""

_ENDED = "verifier ended its process"
"""The rule of a grade if the verifier ended the process that called it."""

JUDGE_RULE = "judge"
"""The rule of a grade whose verdict a judge model decided."""

TRUST_VARIABLE = "HARNESS_GRADERS"
"""Environment variable that lists trusted modules, separated by commas."""

TO_JUDGE = "harness.grading.verifiers.left_open:to_judge"
"""The verifier that leaves every answer to a judge. Runs store this name, so the module cannot be renamed."""

_SPELLING = re.compile(r"(?:[^\W\d]\w*\.)*(?!py:)[^\W\d]\w*:[^\W\d]\w*")
"""MODULE:FUNCTION; MODULE may have dots. A MODULE that ends in `.py` is rejected, since it is a file name."""

_DIGEST_DIGITS = 12
_MAX_MESSAGE_CHARS = 200


Verifier = Callable[[str, Question], bool | Parts]
"""Decides an answer: right or wrong, or how many of its parts are right."""


def require_trusted(questions: Iterable[Question]) -> None:
    """Raise `UsageError` for the first verifier that is misspelled or whose module is not trusted; imports nothing."""
    for grader in names_of(questions):
        if _SPELLING.fullmatch(grader) is None:
            raise UsageError(
                f"the grader {quoted(grader)} must have the form MODULE:FUNCTION, such as mine:is_right for the "
                "function is_right in mine.py (no folder, no .py)"
            )
        if not _trusted(grader):
            raise UsageError(
                f"the grader {quoted(grader)} is code that comes with the benchmark and runs only if you trust it; "
                f"{_to_trust(grader)}"
            )


def refuse_given(questions: Iterable[Question]) -> None:
    """Raise `UsageError` if the verdicts come from another tool's file, since no other grader may then decide them."""
    if any(question.rules.grader == GIVEN for question in questions):
        raise UsageError(
            "the file already contains verdicts, so a judge or another grader has nothing to decide. To grade its "
            "replies, score it without `verdict_key`"
        )


def names_of(questions: Iterable[Question]) -> list[str]:
    """Return the distinct verifiers that the questions name, in alphabetical order."""
    return sorted({question.rules.grader for question in questions} - {RULES, GIVEN})


def load(grader: str) -> Verifier:
    """Return the function that `grader` names as `package.module:function`.

    Raises `UsageError` if its module is not trusted, `TypeError` if the name is not a function of two arguments, and
    whatever the import of the module raises.
    """
    module, _, name = grader.partition(":")
    if not _trusted(grader):
        raise UsageError(f"the module {quoted(module)} is not trusted to grade; {_to_trust(grader)}")
    function = getattr(importlib.import_module(module), name)
    # Unwrapped, since `functools.lru_cache` turns a function, which has a file, into an object.
    if not (inspect.isroutine(code := inspect.unwrap(function)) or inspect.isclass(code)):
        raise TypeError(f"{name} is not a function, but an object of type {type(code).__name__}")
    if problem := plugins.call_problem(function, ("answer", "question")):
        raise TypeError(problem)
    return cast(Verifier, function)


def identity(grader: str) -> str:
    """Return the verifier's name with a digest of the file that defines it, as recorded in each grade."""
    # Unwrapped: the file of a decorator would stay the same when the verifier changes.
    source = Path(inspect.getsourcefile(inspect.unwrap(load(grader))) or "")
    return f"{grader}@{sha256(source.read_bytes()).hexdigest()[:_DIGEST_DIGITS]}"


def unanswered(grader: str, cause: Literal["time", "crash"], seconds: float) -> str:
    """The rule of a grade whose worker was stopped at the deadline of `seconds`, or whose answer ended two workers in
    turn without a reply.

    For the rules and the verifiers of the harness, the reason is a difficult answer, and the rule is the cause. A
    user's own verifier is named in the rule: the user can make it faster or allow more time, and it must have ended the
    process.
    """
    if grader == RULES or _is_shipped(grader):
        return cause
    return f"{_LATE}{seconds:g} s" if cause == "time" else _ENDED


def is_late(rule: str) -> bool:
    """Whether `rule`, the rule of a grade, means that a user's verifier was stopped at the deadline."""
    return rule.startswith(_LATE)


def seconds_of(rule: str) -> float | None:
    """The deadline at which a user's verifier was stopped, in seconds; None if `rule` does not name such a deadline."""
    try:
        return float(rule.removeprefix(_LATE).removesuffix(" s")) if is_late(rule) else None
    except ValueError:  # the grades of a stranger's folder may say anything
        return None


def ask(question: Question, answer: str) -> Verdict:
    """Call the question's verifier on `answer`, in this process; if it raises, the answer is undecided."""
    try:
        correct: object = load(question.rules.grader)(answer, question)
    # The worker reports this exception by the rule "memory", and is then replaced.
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  foreign code; the grade reports what it raised
        return _failed(f"{_RAISED}{describe(error, message=False)}", f"the verifier raised {describe(error)}")
    if isinstance(correct, Parts):
        return _by_parts(*correct)
    if type(correct).__name__ not in ("bool", "bool_"):  # bool_ is numpy 1's
        returned = visible(type(correct).__name__, 40)
        if correct is None:
            return _failed(LEFT_OPEN, "the verifier returned None, which leaves the answer to a judge")
        instead = "instead of True, False or Parts(right, total)"
        return _failed(f"{_RETURNED}{returned}", f"the verifier returned a value of type {returned} {instead}")
    return Verdict("correct" if correct else "wrong", "verifier")


def _failed(rule: str, step: str) -> Verdict:
    """The verdict on an answer on which the verifier gave none."""
    return Verdict("undecided", rule, steps=(step,))


def _by_parts(right: object, total: object) -> Verdict:
    """The verdict on an answer with `right` of `total` parts right; undecided unless both are integers,
    0 ≤ right ≤ total and total ≥ 1.
    """
    if type(right) is not int or type(total) is not int or not (0 <= right <= total and total >= 1):
        step = f"the verifier returned {visible(repr(right), 40)} correct parts out of {visible(repr(total), 40)}"
        return _failed(f"{_RETURNED}no parts: not two whole numbers, 0 to the total", step)
    step = f"{right:,} of {total:,} parts are correct"
    return Verdict("correct" if right == total else "wrong", "verifier", steps=(step,), parts=Parts(right, total))


def describe(error: BaseException, *, message: bool = True) -> str:
    """Describe an exception in one line: its class, its message (if `message`), and the file and line.

    The class includes its module, such as `re.error`, unless it is built in.
    """
    import sysconfig
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    # The last frame of the verifier's own code, not of a library that it called, of Python, or of what calls it.
    callers = (__file__, str(Path(__file__).parent / "processes"))
    elsewhere = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<frozen", *callers)
    own = [frame for frame in frames if not frame.filename.startswith(elsewhere)]
    line = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    says = f": {visible(str(error), _MAX_MESSAGE_CHARS)}" if message and str(error) else ""
    kind = type(error)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"{visible(name, 80)}{says}{line}"


def _is_shipped(grader: str) -> bool:
    """Whether the verifier is part of the harness."""
    return grader.startswith("harness.")


def own_module(grader: str) -> str:
    """The module that must be trusted for a user's verifier, named as in a grade; empty for any other grader."""
    verifier = grader.partition("@")[0]
    return verifier.partition(":")[0] if _SPELLING.fullmatch(verifier) and not _is_shipped(verifier) else ""


def _trusted(grader: str) -> bool:
    """Whether the user trusts the module of `grader`."""
    trusted = [part.strip() for part in os.environ.get(TRUST_VARIABLE, "").split(",")]
    if _is_shipped(grader) or grader.partition(":")[0] in trusted:
        return True
    return any(plugin.kind == "grader" and plugin.value == grader for plugin in plugins.list_plugins())


def _to_trust(grader: str) -> str:
    """The end of a rejection: how the user can trust the module of `grader`."""
    return (
        f"to trust it, set {TRUST_VARIABLE}={quoted(grader.partition(':')[0])} (separate multiple modules with commas)"
    )
