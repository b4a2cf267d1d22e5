"""Chinese sentences that state equations, inequalities, a point, a formula, several values or a rounded value.

Each form is a pattern of a whole sentence with two groups: `head`, the words before, which must limit nothing
(`chinese_answers`), and `list`, the answer.
"""

from __future__ import annotations

import re

from harness.answers.grammar.spellings import VERB_OF_ROUGH_VALUE
from harness.grading.find.chinese import ABOUT, CLASSIFIER, UNIT

_SIGNED = r"[-−－]?\d+(?:\.\d+)?(?:/\d+)?"
_EQUATION = r"[a-zA-Z][₁₂12]?\s*[=＝]\s*[-−]?\d+(?:\.\d+)?(?:/\d+)?"
_LESS = "(?:[<>]=?|[＜＞≤≥])"
BOUND = rf"(?:[a-zA-Z]\s*{_LESS}\s*{_SIGNED}|{_SIGNED}\s*{_LESS}\s*[a-zA-Z](?:\s*{_LESS}\s*{_SIGNED})?)"
_SOLUTION_SET = re.compile(
    rf"(?P<head>[^，,。；;=＝<>]{{0,20}}(?:解集?|取值范围)[是为]|解得)\s*(?P<list>{BOUND}(?:\s*或\s*{BOUND})?)"
)
CONCLUDED = re.compile(
    rf"(?P<head>)(?P<list>{BOUND}(?:\s*或者?\s*{BOUND})?|{_EQUATION}(?:\s*(?:[，,、和]|或者?)\s*{_EQUATION}){{1,3}})"
)
"""Inequalities or several equations that stand alone behind 所以: behind another word they may be a condition."""

_POINT = re.compile(
    rf"(?P<head>[^，,。；;=＝]{{0,20}}坐标[是为])\s*(?P<list>[(（]\s*{_SIGNED}\s*[,，]\s*{_SIGNED}\s*[)）])"
)
_FUNCTION = re.compile(
    r"(?P<head>[^，,。；;=＝]{0,20}(?:解析式|表达式|关系式)[是为])\s*(?P<list>[a-zA-Z]\s*[=＝][-−+*/^²³().\da-zA-Z\s]{1,30})"
)
UNKNOWN = re.compile(rf"(?P<head>[a-zA-Z](?:的值)?(?:是|为|等于))\s*(?P<list>{_SIGNED})")
_SOLUTIONS = re.compile(
    rf"(?P<head>[^，,。；;=＝]{{0,20}}(?:解|根)(?:分别)?[是为]|解得)\s*(?P<list>{_EQUATION}(?:\s*(?:[，,、和]|或者?)\s*{_EQUATION}){{0,3}})"
)
_RESULT = re.compile(
    r"(?P<head>原式|[^，,。；;=＝<>]{0,12}(?:因式分解|分解因式)(?:的结果)?[是为得])\s*(?:[=＝:：]\s*(?:[^\u3400-\u9fff，,。；;=＝<>≈≠]{1,60}[=＝])*)?"
    r"(?P<list>[^\u3400-\u9fff，,。；;=＝<>≈≠?？]{1,60})"
)
"""The result of a calculation or of a factorisation: 原式=2+3=5, 因式分解的结果是(x+2)(x-3)."""

_SEVERAL = rf"{_SIGNED}\s*(?:[%％]|{UNIT}|{CLASSIFIER})?"
_IN_TURN = re.compile(
    rf"(?P<head>[^，,。；;=＝\d]{{0,16}}(?:(?:分别|依次)[填是为]|[解根](?:分别)?[是为]))\s*[:：]?\s*"
    rf"(?P<list>{_SEVERAL}(?:\s*(?:[，,、和]|或者?)\s*{_SEVERAL}){{1,7}})"
)
"""Several values, in the order of their blanks or of any: 依次填3、5、7, 方程的根是1和-2."""

_ROUGH = re.compile(rf"(?P<head>[^，,。；;=＝\d]{{0,20}}?)(?P<list>(?:大约|{ABOUT}){VERB_OF_ROUGH_VALUE}\s*{_SEVERAL})")
"""A rounded value, which a rounded reference equals: 面积约为78.5平方厘米, 走一圈约走31.4米."""

STATING_FORMS = (_SOLUTIONS, _SOLUTION_SET, _POINT, _FUNCTION, UNKNOWN, _RESULT, _IN_TURN, _ROUGH)
