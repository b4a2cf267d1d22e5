r"""The judgement of SGLang's reasoning benchmark as a process: `parse_latex` by antlr4, then sympy.

JSON lines in, JSON lines out, as in `math_verify_child`; imports nothing of the harness. Its rules are that script's:
the last box, else the last number; equal text; numbers within 0.001, also a hundredth and a hundredfold; lists part by
part; a difference that sympy simplifies to zero, or whose value is within 0.001. Left out is the script's `parse_expr`,
which runs what it reads. Memory is bounded here, time by the parent, which kills.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from typing import Any

_TOLERANCE = 1e-3
_MEMORY_BYTES = 2 << 30
_MAX_CHARS = 2_000
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LAYOUT = re.compile(r"\\(?:left|right|!|,|;|:|displaystyle)(?![a-zA-Z])|\\text\{[^{}]*\}|[\s$]|\\%|%")


def main() -> None:
    """Serve until standard input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the parser may print; only verdicts go to the parent

    def say(message: dict[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    try:
        from sympy.parsing.latex import parse_latex

        parse_latex("x")
    except ImportError as error:
        say({"ready": False, "reason": str(error)})
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    say({"ready": True})
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            correct: bool | None = _equal(asked["reference"], _answer(asked["response"]), parse_latex)
        except Exception:  # noqa: BLE001  whatever goes wrong inside is no opinion
            correct = None
        say({"id": asked["id"], "correct": correct})


def _answer(response: str) -> str:
    at = response.rfind("\\boxed{")
    if at < 0:
        numbers = _NUMBER.findall(response[-_MAX_CHARS:].replace(",", ""))
        return str(numbers[-1]) if numbers else ""
    depth, start = 0, at + len("\\boxed")
    for place in range(start, min(len(response), start + _MAX_CHARS)):
        depth += (response[place] == "{") - (response[place] == "}")
        if depth == 0:
            return response[start + 1 : place]
    return ""


def _equal(reference: str, answer: str, parse_latex: Any) -> bool:
    if len(reference) > _MAX_CHARS or len(answer) > _MAX_CHARS:
        return reference == answer
    one, other = (_LAYOUT.sub("", text).rstrip(".") for text in (reference, answer))
    if one == other:
        return bool(one)
    left, right = _number(one), _number(other)
    if left is not None and right is not None:
        return any(abs(right - value) <= _TOLERANCE for value in (left, left / 100, left * 100))
    parts, others = _parts(one), _parts(other)
    if len(parts) > 1 or len(others) > 1:
        return len(parts) == len(others) and all(
            _equal(part, given, parse_latex) for part, given in zip(parts, others, strict=True)
        )
    return _same_value(parse_latex(one), parse_latex(other))


def _same_value(one: Any, other: Any) -> bool:
    import sympy

    if one == other:
        return True
    if isinstance(one, sympy.Equality) and isinstance(other, sympy.Equality):
        one, other = one.lhs - one.rhs, other.lhs - other.rhs
    difference = one - other
    if sympy.simplify(difference) == 0:
        return True
    value = sympy.N(difference)
    return bool(value.is_number and abs(value) <= _TOLERANCE)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _parts(text: str) -> list[str]:
    """The parts of a list or tuple between its outer brackets."""
    if text[:1] in ("(", "[") and text[-1:] in (")", "]"):
        text = text[1:-1]
    found, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            found.append(text[start:place])
            start = place + 1
    return [*found, text[start:]]


if __name__ == "__main__":
    main()
