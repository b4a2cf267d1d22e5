"""Signs that children type in another way: v for √, x for ×, 小于 for <, X for the unknown x, a blank for a comma.

The reference says what the sign stands for, so that each is read only beside a reference of one kind:

    v and x, alone        beside a judgement by a sign or in Chinese: √, ×, 对, 错误
    <, >, = and a true    beside a lone <, > or =, where each is the word 小于, 大于 or 等于
    relation of numbers
    X, Y and Z            in equations and inequalities of these letters and numbers only, beside those of x, y and z;
                          of other letters both may be names at once, as are a side a and an angle A
    42÷7=6人 6×3=18人    beside one value, where a blank parts two steps: the last one is the result
    ！ at the end         beside a reference without it, where it is no factorial
    a blank or brackets   between an equation and its solution, beside a value of that unknown: 3x=15 x=5, 3x=15（x=5）
    29天 366天            beside as many values between ；, where a blank parts two values
    x1 and x2             as the two solutions, beside values of x, where x1 is no product
"""

from __future__ import annotations

import re

from harness.answers.words import words_of
from harness.grading.compare.plain_numbers import plain_number

_MARKS = {"v": "√", "x": "×"}
_SIGN = re.compile(r"\s*\$?\s*([<>=＜＞＝])\s*\$?\s*")
_RELATION = re.compile(r"\$?([^<>=＜＞＝]{1,60})([<>=＜＞＝])([^<>=＜＞＝]{1,60}?)\$?")
_LATIN = re.compile(r"(?<![A-Za-z\\])[A-Za-z]")
_UNKNOWNS = re.compile(r"(?=[^=<>≤≥＝＜＞]*[=<>≤≥＝＜＞])[\d\sxyz.,;，；、=<>≤≥≠＝＜＞+−()（）/^*或且和$-]+")
"""Relations of x, y and z and numbers, without a command of LaTeX."""

_MAX_CHARS = 200
"""Longest answer that may be an equation with its solution, in characters."""

_UNKNOWN = re.compile(r"\s*\$?\s*([a-z])\s*[=＝]")
_STEP = (
    r"[\d.+\-−×÷*/%()（）]{1,60}[=＝][\d./]{1,20}"
    r"(?:[（(][\u3400-\u9fffA-Za-z²³/]{1,8}[)）]|[\u3400-\u9fff]{1,4}|[a-z]{1,3}[²³]?)?"
)
_STEPS = re.compile(rf"(?:{_STEP}[\s。；;，,]{{1,9}}){{1,5}}({_STEP})[\s。]{{0,9}}")
"""Steps of a calculation with numbers on one line, the last of which is the result."""

_IN_BLANKS = re.compile(r"[-−]?\d[\d./%]{0,20}[\u3400-\u9fff]{0,4}(?:\s+[-−]?\d[\d./%]{0,20}[\u3400-\u9fff]{0,4}){1,9}")
"""Numbers, perhaps with units, with nothing but blanks between them."""

_GAP = r"(?<=[\d)）])(?:\s|\\[ ,;:!]|\\q?quad(?![a-z])){1,9}"


def as_typed(reference: str, answer: str) -> str:
    """Return an answer with the sign that its letter or word stands for beside the reference; any other as it is."""
    if "！" not in reference:
        answer = answer.rstrip("！")
    text = answer.strip()
    if (mark := _MARKS.get(text.casefold())) is not None:
        return mark if not _LATIN.search(reference) and words_of(reference) in ("true", "false") else answer
    if (compared := _SIGN.fullmatch(reference)) is not None:
        sign = _sign_of(text, compared[1])
        return words_of(sign) if sign else answer
    if not any(sign in reference for sign in "；;，,、=＝") and (steps := _STEPS.fullmatch(text)) is not None:
        return steps[1]
    if "；" in reference and _IN_BLANKS.fullmatch(text) and len(parts := text.split()) == reference.count("；") + 1:
        return "；".join(parts)
    if (unknown := _UNKNOWN.match(reference)) is not None and len(answer) <= _MAX_CHARS:
        answer = text = _with_parts(text, unknown[1])
    # The cheap tests first: most answers have no such letter.
    if not any(letter in text for letter in "XYZ") or any(letter in text for letter in "xyz"):
        return answer
    small = answer.lower()
    return small if all(map(_UNKNOWNS.fullmatch, (reference, small))) else answer


def _with_parts(text: str, unknown: str) -> str:
    """Return equations with a comma before each solution that stands behind a blank or in brackets, and with x_1, x_2
    for x1, x2 if both are there.
    """
    parted = re.sub(rf"{_GAP}(?={unknown}[12]?\s*[=＝])", "，", text)
    parted = re.sub(rf"(?<=[\d)）])\s*[（(]({unknown}\s*[=＝][^()（）]+)[)）]\Z", r"，\1", parted)
    numbered = rf"(?<![A-Za-z\d_.)）\\]){unknown}([12])(?=\s*[=＝])"
    return re.sub(numbered, rf"{unknown}_\1", parted) if {*re.findall(numbered, parted)} == {"1", "2"} else parted


def _sign_of(text: str, reference: str) -> str:
    """Return the sign that a text is, or the reference's if the text is a true relation of two numbers by this sign:
    0.8=4/5 beside =. Empty for any other text, such as 2.05<2.5 beside >, whose sides may be the other way round.
    """
    if (sign := _SIGN.fullmatch(text)) is not None:
        return sign[1]
    relation = _RELATION.fullmatch(text)
    if relation is None or words_of(relation[2]) != words_of(reference):
        return ""
    left, right = plain_number(relation[1].strip()), plain_number(relation[3].strip())
    if left is None or right is None:
        return ""
    difference = left.top * right.bottom - right.top * left.bottom
    is_true = {"小于": difference < 0, "大于": difference > 0, "等于": difference == 0}
    return reference if is_true[words_of(reference)] else ""
