"""Chinese sentences that state equations, inequalities, a point, a formula, several values or a rounded value, and the
premise that may stand before a statement.

Each form is a pattern of a whole sentence with two groups: `head`, the words before, which must limit nothing
(`chinese_answers`), and `list`, the answer.
"""

from __future__ import annotations

import re

from harness.answers.grammar.spellings import VERB_OF_ROUGH_VALUE
from harness.grading.find.chinese import ABOUT, CLASSIFIER, UNIT, limits

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

_FILLED = re.compile(
    rf"(?P<head>[^，,。；;=＝\d]{{0,8}}(?:括号|方框|横线|空格|(?<![天太航真])空)[里内中上处]?应?该?填[入写上]?[:：]?)\s*(?P<list>{_SEVERAL})"
)
"""The content of a blank: 括号里应填25."""

_WRITTEN = re.compile(rf"(?P<head>)(?:这个(?:小|整|分)?数|它)写作\s*[:：]?\s*(?P<list>{_SIGNED})")
"""A number named in words, in digits: 这个数写作：50.08."""

_SOLVED = re.compile(
    r"(?P<head>)(?:系数化[为成]?1|(?:方程|不等式)?[两左右]+边(?:同时|都)*(?:除以|乘以?|加上?|减去?)[-−]?\d+(?:\.\d+)?|移项|合并(?:同类项)?)"
    rf"[，,]?\s*可?得[到出]?[:：]?\s*(?P<list>{BOUND}|{_EQUATION})"
)
"""The last step of a solution, whose result is solved for its letter: 系数化为1，得x>3."""

_HAS_SEVERAL = re.compile(
    rf"(?P<head>[^，,。；;=＝\d]{{1,16}}有)\s*[:：]?\s*(?P<list>{_SIGNED}(?:\s*[，,、和]\s*{_SIGNED}){{1,7}})"
)
"""Several numbers without a unit, each of which is what is named before 有: 质数有2和3."""

_ROUGH = re.compile(rf"(?P<head>[^，,。；;=＝\d]{{0,20}}?)(?P<list>(?:大约|{ABOUT}){VERB_OF_ROUGH_VALUE}\s*{_SEVERAL})")
"""A rounded value, which a rounded reference equals: 面积约为78.5平方厘米, 走一圈约走31.4米."""

STATING_FORMS = (
    _SOLUTIONS,
    _SOLUTION_SET,
    _POINT,
    _FUNCTION,
    UNKNOWN,
    _RESULT,
    _IN_TURN,
    _ROUGH,
    _FILLED,
    _WRITTEN,
    _SOLVED,
    _HAS_SEVERAL,
)

_DRAWN = re.compile(r"[，,](?=(?:所以|因此|因而|故|于是)[^，,]*\Z)")
_SIGNS_OF_NUMBERS = re.compile(r"[-−+×÷*/^²³()（）=＝]")
_RESULT_OF_PREMISE = re.compile(rf"[=＝]\s*({_SIGNED})[^\d，,=＝]{{0,8}}\Z")


def end_of_premise(sentence: str) -> int:
    """Return where the last clause begins that 所以 draws from those before it; 0 without one, or if they limit it.

    Equations in numbers limit nothing (6=2×3，8=2×4，所以最小公倍数是24), unless the last one has another result.
    """
    drawn = _DRAWN.search(sentence)
    if drawn is None:
        return 0
    premise, conclusion = sentence[: drawn.start()], sentence[drawn.end() :]
    result = _RESULT_OF_PREMISE.search(premise)
    if result is not None and re.search(rf"(?<![\d.]){re.escape(result[1])}(?![\d.])", conclusion) is None:
        return 0
    return 0 if limits(_SIGNS_OF_NUMBERS.sub("", premise)) else drawn.end()
