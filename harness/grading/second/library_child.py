r"""Another library's grader as a process. It imports nothing from the harness, so any environment will do.

python library_child.py GRADER SECONDS       # a key of `GRADERS`; processor time for one answer

In: lines of JSON, [references, response]; out: True, False or None, one per line. The first line of output is "ready",
or why the library cannot be imported. This process limits its memory, and an answer beyond its time limit ends it.

`sympy` is the grader of SGLang's reasoning benchmark: `parse_latex` by antlr4, then sympy. The rules are those of that
benchmark's script: the answer is the last box, or otherwise the last number. It is right if its text equals that of the
reference; if both are numbers within 0.001, also with the reference divided or multiplied by 100; if both are lists
with equal parts; or if sympy simplifies their difference to zero or to a value within 0.001. The script's `parse_expr`
is left out, since it executes what it reads.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Any

_TOLERANCE = 1e-3
_MEMORY_BYTES = 2 << 30
_MAX_CHARS = 2_000
_BOX = re.compile(r"\\boxed\{((?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*)\}")
"""A box whose braces are nested up to three deep."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LAYOUT = re.compile(r"\\(?:left|right|!|,|;|:|displaystyle)(?![a-zA-Z])|\\text\{[^{}]*\}|[\s$]|\\%|%")
_BETWEEN_PARTS = re.compile(r",(?![^(\[{]*[)\]}])")
"""A comma outside all brackets."""


def main() -> None:
    """Write a verdict on each line of standard input, references and a response, until the input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the library may print; only verdicts go to the parent
    try:
        is_right = GRADERS[sys.argv[1]]()
    except ImportError as error:
        replies.write(f"{error}\n")
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    replies.write("ready\n")
    for line in sys.stdin:
        references, response = json.loads(line)
        replies.write(f"{_by_any(is_right, references, response)}\n")


def _by_any(is_right: Callable[[str, str], bool], references: Iterable[str], response: str) -> bool | None:
    """Whether the response is right according to any reference; None if none accepts it and one is undecided."""
    correct: bool | None = False
    for reference in references:
        # Math-Verify sets the real-time timer; this one kills the process, even within a long multiplication.
        signal.setitimer(signal.ITIMER_PROF, float(sys.argv[2]))
        try:
            if is_right(reference, response):
                return True
        except Exception:  # noqa: BLE001  any failure of the library counts as no opinion
            correct = None
    return correct


def _math_verify() -> Callable[[str, str], bool]:
    """Math-Verify, as a function of reference and response. Raises `ImportError`."""
    from math_verify import parse, verify

    def is_right(reference: str, response: str) -> bool:
        if "$" not in reference and "\\boxed" not in reference:
            reference = f"${reference}$"  # the library reads a bare answer only as a formula
        return bool(verify(parse(reference), parse(response)))

    return is_right


def _sympy() -> Callable[[str, str], bool]:
    """SGLang's grader, as a function of reference and response. Raises `ImportError`."""
    from sympy.parsing.latex import parse_latex

    parse_latex("x")  # sympy imports without antlr4, and needs it only at the first parse
    return lambda reference, response: _equal(reference, _answer(response), parse_latex)


GRADERS = {"math-verify": _math_verify, "sympy": _sympy}
"""Name of a grader → the function that imports its library and returns it."""


def _answer(response: str) -> str:
    """Return the content of the last box, or the last number, or nothing."""
    answers = _BOX.findall(response) or _NUMBER.findall(response[-_MAX_CHARS:].replace(",", ""))
    return str(answers[-1]) if answers else ""


def _equal(reference: str, answer: str, parse_latex: Any) -> bool:
    """Whether two answers are equal for SGLang's grader: the same text, numbers within 0.001, or a difference that
    SymPy simplifies to zero. Lists are compared part by part.
    """
    if len(reference) > _MAX_CHARS or len(answer) > _MAX_CHARS:
        return reference == answer
    left_text, right_text = (_LAYOUT.sub("", text).rstrip(".") for text in (reference, answer))
    if left_text == right_text:
        return bool(left_text)
    left_number, right_number = _number(left_text), _number(right_text)
    if left_number is not None and right_number is not None:
        return any(
            abs(right_number - value) <= _TOLERANCE for value in (left_number, left_number / 100, left_number * 100)
        )
    parts, others = _parts(left_text), _parts(right_text)
    if len(parts) > 1 or len(others) > 1:
        return len(parts) == len(others) and all(
            _equal(part, given, parse_latex) for part, given in zip(parts, others, strict=True)
        )
    return _same_value(parse_latex(left_text), parse_latex(right_text))


def _same_value(left: Any, right: Any) -> bool:
    """Whether two sympy objects are equal, their difference simplifies to 0, or its value is within 0.001."""
    import sympy

    if left == right:
        return True
    if isinstance(left, sympy.Equality) and isinstance(right, sympy.Equality):
        left, right = left.lhs - left.rhs, right.lhs - right.rhs
    difference = left - right
    if sympy.simplify(difference) == 0:
        return True
    value = sympy.N(difference)
    return bool(value.is_number and abs(value) <= _TOLERANCE)


def _number(text: str) -> float | None:
    """Return `text` as a number without thousands separators, or None."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _parts(text: str) -> list[str]:
    """Return the parts of a list or tuple between its outer brackets."""
    return _BETWEEN_PARTS.split(text[1:-1] if text[:1] in ("(", "[") and text[-1:] in (")", "]") else text)


if __name__ == "__main__":
    main()
