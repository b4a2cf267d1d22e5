"""What an answer means beside its question: the rounded value where one is asked for, the 万 that the question prints.

the question                                the answer           what it means
asks to round: 四舍五入, 约是, ≈ …           98600≈10万, 约10万    10万
prints 万 or 亿 behind its only blank        4.6                  4.6万, beside a reference with 万
                                            346万                346, beside a reference without 万
"""

from __future__ import annotations

import re

from harness.answers.boxed import without_boxes
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.parse import parse
from harness.answers.grammar.tree import Node
from harness.grading.compare.rounding import is_rounded_integer

_ASKS_TO_ROUND = re.compile(
    r"四舍五入|近似|精确到|尾数|估算|大约|约(?:是|为|等于|有|合|[多几])|[≈≒]|\\approx(?![a-z])"
    r"|保留(?:到|[一二两三四五六七八九\d])"
)
_SIGN = re.compile(r"\s*(?:[≈≒]|\\approx(?![a-z])|大?约等?于?)\s*")
_BLANK_BEFORE_SCALE = re.compile(r"[（(][\s_＿]*[)）]\s*([万亿])|_{2,}\s*([万亿])")
_BLANK = re.compile(r"[（(][\s_＿]*[)）]|_{2,}")
_PLAIN_NUMBER = re.compile(r"\s*\d+(?:\.\d+)?\s*")


def as_asked(question: str, references: tuple[str, ...], answer: str) -> str:
    """Return what an answer means beside the text of its question; `answer` itself where the question adds nothing."""
    if question.isascii() or len(answer) > _MAX_CHARS:
        return answer
    plain = without_boxes(answer)
    if printed := _printed_scale(question):
        has_scale = [printed in reference for reference in references]
        if all(has_scale) and _PLAIN_NUMBER.fullmatch(plain):
            return f"{plain.strip()}{printed}"
        repeated = re.fullmatch(rf"(?:.*[=≈])?\s*([^=≈]+?)\s*{printed}[^\d万亿]{{0,2}}", plain)
        if not any(has_scale) and repeated is not None:
            return repeated[1]
    sign = _SIGN.search(plain)
    if sign is None or _ASKS_TO_ROUND.search(question) is None:
        return answer
    value, rounded = plain[: sign.start()].rpartition("=")[2].strip(), plain[sign.end() :]
    if not value:
        return rounded
    left, right = _number(value), _number(rounded)
    return rounded if left is not None and right is not None and is_rounded_integer(left, right) else answer


def _printed_scale(question: str) -> str:
    """Return the 万 or 亿 that a question prints behind its only blank; empty without one."""
    scale = _BLANK_BEFORE_SCALE.search(question)
    return "" if scale is None or len(_BLANK.findall(question)) > 1 else scale[1] or scale[2]


_MAX_CHARS = 80
"""Longest answer that is compared with its question, in characters."""


def _number(text: str) -> Node | None:
    """Return the node of a number, without its unit; None for any other text."""
    try:
        node = parse(text)
    except (Unreadable, RecursionError):
        return None
    node = node.args[0] if node.op == "quantity" else node
    return node if node.op == "num" else None
