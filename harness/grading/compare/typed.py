"""Signs that children type in another way: v for √, x for ×, 小于 for <, and X for the unknown x.

The reference says what the sign stands for, so that each is read only beside a reference of one kind:

    v and x, alone        beside a judgement by a sign or in Chinese: √, ×, 对, 错误
    小于, 大于, 等于       beside a lone <, > or =
    X, Y and Z            in equations and inequalities of these letters and numbers only, beside those of x, y and z;
                          of other letters both may be names at once, as are a side a and an angle A
"""

from __future__ import annotations

import re

from harness.answers.words import words_of

_MARKS = {"v": "√", "x": "×"}
_COMPARISONS = {"小于": "<", "大于": ">", "等于": "="}
_SIGN = re.compile(r"\s*\$?\s*[<>=＜＞＝]\s*\$?\s*")
_LATIN = re.compile(r"(?<![A-Za-z\\])[A-Za-z]")
_UNKNOWNS = re.compile(r"(?=[^=<>≤≥＝＜＞]*[=<>≤≥＝＜＞])[\d\sxyz.,;，；、=<>≤≥≠＝＜＞+−()（）/^*或且和$-]+")
"""Relations of x, y and z and numbers, without a command of LaTeX."""


def as_typed(reference: str, answer: str) -> str:
    """Return an answer with the sign that its letter or word stands for beside the reference; any other as it is."""
    text = answer.strip()
    if (mark := _MARKS.get(text.casefold())) is not None:
        return mark if not _LATIN.search(reference) and words_of(reference) in ("true", "false") else answer
    if (sign := _COMPARISONS.get(text)) is not None:
        return sign if _SIGN.fullmatch(reference) else answer
    # The cheap tests first: most answers have no such letter.
    if not any(letter in text for letter in "XYZ") or any(letter in text for letter in "xyz"):
        return answer
    small = answer.lower()
    return small if all(map(_UNKNOWNS.fullmatch, (reference, small))) else answer
