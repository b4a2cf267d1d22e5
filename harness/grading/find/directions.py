r"""The direction that a verb or noun directly before a quantity gives it: 下降25%, 亏5元, "decreased by \boxed{25\%}".

Beside a reference without words such an answer may be the quantity or its negative: 25% answers "by how much did it
fall?", and -25% "how did it change?". The question is not read, so that the verdict stands only if both get it. The
words are a closed list, and nothing but layout may stand between them and the quantity. Upward words turn nothing.
"""

from __future__ import annotations

import re

_BEFORE_CHARS, _BEHIND_CHARS = 80, 30
"""Longest text before and behind an answer that is read."""

_LAYOUT = re.compile(
    r"\\(?:boxed|fbox|framebox|text(?:bf|rm|it)?|mbox|mathrm|mathbf|q?quad|left|displaystyle)(?![A-Za-z])"
    r"|\\[(\[,;:! ]|\\(?=%)|[{}$*_`~ \t]"
)
_CLAUSE_MARK = re.compile(r"[，,。；;：:！!？?、\n=＝]")
_DOWN_IN_CHINESE = re.compile(
    r"(?:下[降跌滑调]|减[少小产轻]|降低|负增长|亏损?|贬值|欠|(?<![升下骤])降价?|(?<!下)跌价?"
    r"|\A(?:所以|因此|因而|故|共)?[还仍尚]?[差少]|(?<=[还仍尚])[差少])[了掉去]?\Z|(?:亏损|[降跌减]幅)[是为]?\Z"
)
"""差 and 少 count only where no compared thing stands before them: 相差5元 and 两人差5岁 have no direction."""

_DOWN_IN_ENGLISH = re.compile(
    r"(?i)\b(?:(?:decreas|declin|reduc)(?:e|es|ed|ing)|drop(?:s|ped|ping)?|f[ae]ll(?:s|en|ing)?|shr[aiu]nk(?:s|ing)?"
    r"|(?:go|goes|went|gone|is|was|are|were)\s+down)\s+by\s*\Z"
    r"|\b(?:loss|decrease|reduction|drop|fall|decline|deficit|debt)\s+of\s*\Z"
)
_DOWN_BEHIND = re.compile(r"(?i)\s*(?:%\s*)?(?:decrease|reduction|drop|decline|loss)\b")
_UNSIGNED = re.compile(r"(?P<opens>(?:\$|\\[(\[]|\s)*)(?=\d|\\[dt]?frac|\\[$]|[¥￥€£])")


def opposite(answer: str, text: str, start: int, end: int) -> str:
    """Return the negative of an answer if the words beside text[start:end] say that it fell or is owed; else "".

    An answer with a sign of its own, or without a number at its beginning, has none.
    """
    line = text[max(0, start - _BEFORE_CHARS) : start]
    quantity = _UNSIGNED.match(answer)
    if quantity is None:
        return ""
    # In English the noun may follow: a 25% decrease.
    falls = _DOWN_BEHIND.match(_LAYOUT.sub(" ", text[end : end + _BEHIND_CHARS]))
    if falls is None and line.isascii():
        falls = _DOWN_IN_ENGLISH.search(_LAYOUT.sub(" ", line))
    elif falls is None:
        # What fell in an earlier clause says nothing of this quantity.
        falls = _DOWN_IN_CHINESE.search(_CLAUSE_MARK.split(_LAYOUT.sub("", line))[-1])
    return "" if falls is None else f"{quantity['opens']}-{answer[quantity.end() :]}"
