r"""Words before a box that make a rate of its quantity: `每支要\boxed{12元}`, `each pays \boxed{12} dollars`.

Beside the reference 12元 such a box may state the price of one where the total was asked for. So it is undecided, as
the same clause without a box is (`chinese_clauses.of_clause`). A bare reference has no unit, and a rate equals itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.grading.find.chinese import CLASSIFIER, NUMERAL_SIGNS, UNIT

_BEFORE_CHARS = 80
"""Longest text before a box that is read."""

_LAYOUT = re.compile(
    r"\\(?:boxed|fbox|framebox|text(?:bf|rm|it)?|mbox|mathrm|mathbf|q?quad|left|displaystyle)(?![A-Za-z])"
    r"|\\[(\[,;:! ]|[{}$*_`~]"
)
# Another quantity behind 每 is the rate itself: 每箱12个，3箱共, 每箱12个×3=.
_EACH = re.compile(rf"每(?:(?!\d\s*(?:{UNIT}|{CLASSIFIER})|[{NUMERAL_SIGNS}](?:{UNIT}|元))[^，,。；;：:！!？?\n])*\Z")
_EACH_IN_ENGLISH = re.compile(r"(?i)(?<!\bof )\b(?:each|every|per)\b[^\d,.;:!?\n=]*\Z")
"""The length of each side is no length per side, so that "of each" makes no rate."""

_RATE = re.compile(r"/\s*(?!\d)|每|(?i:\b(?:per|each|every|an? (?:hour|day|week|month|year))\b)")
_COMMAND = re.compile(r"\\(?:text(?:bf|rm|it)?|mbox|mathrm|[,;:! ])|[{}$~]")
_WITH_NAME = re.compile(r"\s*(?:\\[$]|[¥￥€£])?[-−]?[\d.,/]+\s*(?P<name>[A-Za-z\u3400-\u9fff²³^\d ]*)\.?\s*")


def is_rate_before_box(text: str, start: int, answer: str, references: Sequence[str]) -> bool:
    """Whether the clause before the box that holds text[start:] makes its quantity a rate, and a reference is one
    quantity with a unit that is no rate.
    """
    before = _LAYOUT.sub("", text[max(0, start - _BEFORE_CHARS) : start])
    each = _EACH_IN_ENGLISH if before.isascii() else _EACH
    if each.search(before) is None or _RATE.search(_COMMAND.sub("", answer)) is not None:
        return False
    # Beside a rate an amount is compared by its unit, which decides nothing either.
    return any(map(_has_unit, references)) and not any(map(_RATE.search, references))


def _has_unit(reference: str) -> bool:
    """Whether a reference is a number with a unit or a currency, or with the name of what was counted."""
    plain = _COMMAND.sub("", reference.replace("\\$", "¥"))
    quantity = _WITH_NAME.fullmatch(plain)
    if quantity is None:
        return False
    # Each angle is 60 degrees: no total of angles is asked for as often.
    name = quantity["name"].strip()
    return plain.lstrip()[:1] in "¥￥€£" or (bool(name) and not name.startswith("degree"))
