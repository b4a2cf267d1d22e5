"""The meaning that its clause gives a quantity in Chinese: a rate, a share of a whole, or one of several quantities."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.grading.find.chinese import CLASSIFIER, NUMERAL_SIGNS, UNIT
from harness.grading.find.chinese_answers import MAX_CHARS, RATIO

_CLAUSE_MARK = re.compile(r"[，,。；;：:！!？?\n]")
_PER = re.compile(
    r"每(?P<of>小时|时|分钟?|秒钟?|天)(?:能|可以?)?(?:行驶?|走|跑|骑|飞行?|生产|加工|修|做|织|流|抽水|注水)?了?\s*\Z"
)
_EACH_THING = re.compile(rf"每({UNIT}|{CLASSIFIER})")
_NAME_OF_VALUE = re.compile(r".*(?:[是为=＝]|等于)")
_EACH_ONE = re.compile(rf"每|(?<![\d.{NUMERAL_SIGNS}])[1一](?:个?小时|分钟?|秒钟?)")
"""Words that make a clause a rate: 每小时行40千米, 1小时行40千米."""

_RATE = re.compile(r"/(?!\d)|每")
_SHARE = re.compile(r"占|(?:的|剩下?|余下|[用花剪截卖]去|了)\s*\Z")
"""Words of a clause whose number without a unit is a part of a whole: 占全班的3/5, 还剩绳子的1/2, 用去了1/4."""

_WITHOUT_UNIT = re.compile(
    rf"(?:\\[dt]?frac|[-−+\d.,/:：∶\s{{}}%％\\$])+|百分之[{NUMERAL_SIGNS}点\d]+|[{NUMERAL_SIGNS}]+(?:分之[{NUMERAL_SIGNS}]+)?|一?半"
)
"""A number, a fraction, a percentage or a ratio, in digits, LaTeX or words, without a unit."""

_MAX_BEFORE = 4
"""Number of quantities before an answer that are compared, at most."""

_STOPS = re.compile("[。！？\n]")
_WITH_UNIT = re.compile(rf"(?<![\d.])[-−]?\d+(?:\.\d+)?(?:/\d+)?\s*(?:[%％]|{UNIT}|{CLASSIFIER})")


def of_clause(answer: str, head: str, references: Sequence[str]) -> str | None:
    """Return an answer with the "per" of its clause beside a rate; None if its clause makes it no answer to compare.

    Beside 40千米/小时 the answer of 汽车每小时行40千米 is 每小时40千米. Beside 40千米 it may be a distance per hour or
    per minute. 男生占全班的3/5 states no ratio, such as 3:5, and 还剩绳子的1/2 no length, such as 1/2米.
    head: the text before the answer.
    """
    # What an earlier clause says of rates and shares is not said of this number.
    clause = _CLAUSE_MARK.split(head)[-1]
    if _SHARE.search(clause) is not None:
        if any(map(RATIO.fullmatch, references)):
            return None
        if _WITHOUT_UNIT.fullmatch(answer) is not None and not any(map(_WITHOUT_UNIT.fullmatch, references)):
            return None
    name = _NAME_OF_VALUE.match(answer)
    clause += "" if name is None else name.group()
    # A bare reference names no unit, so that a rate and a length with its number are one answer to it.
    if (per := _EACH_ONE.findall(clause)) == [] or any(map(_WITHOUT_UNIT.fullmatch, references)):
        return answer
    # Two references, 6元/千克 and 6元, say that 每千克 may be left out, whatever thing it is said of: 每千克苹果6元.
    things = _EACH_THING.findall(clause) if len(per) == 1 and any(map(_WITH_UNIT.fullmatch, references)) else []
    if any(
        reference.endswith(f"/{thing}") or f"每{thing}" in reference for thing in things for reference in references
    ):
        return answer
    rate = _PER.search(clause) if any(map(_RATE.search, references)) and len(per) == 1 else None
    return None if rate is None or _WITH_UNIT.fullmatch(answer) is None else f"每{rate['of']}{answer}"


def quantities_before(text: str, start: int) -> tuple[str, ...]:
    """Return the quantities, with their units, in a sentence before text[start:]: 5小时 in 5小时行驶350千米."""
    first = max(0, start - MAX_CHARS)
    begin = max((stop.end() for stop in _STOPS.finditer(text, first, start)), default=first)
    quantities = _WITH_UNIT.finditer(text, begin, start)
    return tuple(dict.fromkeys(quantity.group() for quantity in quantities))[-_MAX_BEFORE:]
