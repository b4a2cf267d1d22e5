"""What an answer means beside its question: the rounded value where one is asked for, the 万 that the question prints.

the question                                the answer           what it means
asks to round: 四舍五入, 约是, ≈ …           98600≈10万, 约10万    10万
prints 万 or 亿 behind its only blank        4.6                  4.6万, beside a reference with 万
                                            346万                346, beside a reference without 万
"""

from __future__ import annotations

import re
from functools import lru_cache

from harness.answers.boxed import without_boxes
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.parse import parse
from harness.answers.grammar.tree import Node
from harness.answers.grammar.units import Unit, unit_of
from harness.grading.compare.letters_as_unit import MAX_QUESTION_CHARS, unit_at
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
    # The bound holds where a long prompt does not reach the rules (the pool) as where it does.
    if question.isascii() or len(question) > MAX_QUESTION_CHARS or len(answer) > _MAX_CHARS:
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


_UNIT_IN_ENGLISH = re.compile(
    r"(?i)\b(?:in|how\s+many)\s+((?:degrees\s+|square\s+|cubic\s+)?[a-z/^·*²³0-9-]+(?:\s+per\s+[a-z]+)?)(?=\s*([).,;:?]|\Z)?)"
)
_UNIT_IN_CHINESE = re.compile(
    r"(?:多少|几|[）)]|__)\s?([\u3400-\u9fff]{1,6}(?:/[\u3400-\u9fff]{1,3})?|[A-Za-z]{1,3}[²³]?(?![A-Za-z]))"
)
_SENTENCE = re.compile(r"[.?!]\s|\n")
_ASKS_IN_ENGLISH = re.compile(r"(?i)\b(?:how|what|find|express|calculate|compute|determine|give)\b")
_DEGREES = re.compile(r"°\s?([CF])\b")


def in_other_unit(question: str, answer: str) -> bool:
    """Whether an answer has a unit, and the question asks for its bare value in other units only: 18 cents where the
    question says "how much in dollars".

    False where the question names no unit, or one that has no known size.
    """
    if len(question) > MAX_QUESTION_CHARS or len(answer) > _MAX_CHARS:
        return False
    try:
        node = parse(without_boxes(answer))
    except (Unreadable, RecursionError):
        return False
    node = node.args[0][-1] if node.op == "rel" else node
    unit = unit_of(node.args[1]) if node.op == "quantity" else None
    units = frozenset[Unit]() if unit is None else _units_of(question)
    return bool(units) and unit not in units


@lru_cache(maxsize=1_024)
def _units_of(question: str) -> frozenset[Unit]:
    """Return the units that a question asks for."""
    plain = _DEGREES.sub(lambda sign: {"C": "celsius", "F": "fahrenheit"}[sign[1]], question)
    asking = [sentence for sentence in _SENTENCE.split(plain) if _ASKS_IN_ENGLISH.search(sentence)]
    english = [words for words, end in _UNIT_IN_ENGLISH.findall("".join(asking[-1:])) if len(words) > 1 or end]
    chinese = (words.replace("²", "^2").replace("³", "^3") for words in _UNIT_IN_CHINESE.findall(plain))
    units = (*map(unit_of, english), *map(unit_at, chinese))
    return frozenset(unit for unit in units if unit is not None)


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
