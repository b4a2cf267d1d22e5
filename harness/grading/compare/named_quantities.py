r"""Quantities with names, written in a row in Chinese: 长8厘米，宽5厘米, 商5余2, 7袋，还剩3个.

A text is such a row if it is nothing but names, each with its number and perhaps a unit. 是, 为, 有, = and a colon
may stand between a name and its number, commas between quantities, and LaTeX's commands for words anywhere. The first
quantity may lack a name: 7袋，还剩3个. Two rows are equal if they give the same names the same quantities. All else
stays undecided, for another name may be another word for the same thing.
"""

from __future__ import annotations

import re
from fractions import Fraction

from harness.answers.grammar.units import unit_of
from harness.answers.words import without_text_commands

MAX_CHARS = 120
"""Longest text that is read as a row of quantities, in characters."""

_HAN = r"[\u3400-\u9fff]"
_NAME = rf"(?P<name>{_HAN}{{{{{{least}},6}}}}?)\s*(?:[是为有:：=＝]\s*)?"
_UNIT = rf"\s*(?P<unit>{_HAN}{{0,4}}?|[a-zA-Z]{{1,3}})\s*"
_FIRST = re.compile(_NAME.format(least=0))
_BETWEEN = re.compile(rf"{_UNIT}(?:[,，、；;]\s*|(?=余|还剩)){_NAME.format(least=1)}")
_LAST = re.compile(rf"{_UNIT}[。.]?")
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,12})?")
_LAYOUT = re.compile(r"[\s${}~]+|\\[,;:! ]")
_FURTHER = {"余数": "余"}
"""Name → the shorter name of the same quantity."""

_Row = dict[str, tuple[Fraction, object]]
"""Name → its number in base units, and the dimension of its unit, or the unit as it is written."""


def same_named_quantities(reference: str, answer: str) -> bool:
    """Whether two texts are rows of quantities with the same names, numbers and units, in any order."""
    if reference.isascii() or answer.isascii():
        return False
    row = _row(reference)
    return row is not None and row == _row(answer)


def names_quantities(text: str) -> bool:
    """Whether a text is a row of quantities with names."""
    return not text.isascii() and _row(text) is not None


def _row(text: str) -> _Row | None:
    """Return the quantities of a row by their names; None if the text is no row of two quantities or more."""
    plain = _LAYOUT.sub(" ", without_text_commands(text)).strip() if len(text) <= MAX_CHARS else ""
    numbers = list(_NUMBER.finditer(plain))
    if len(numbers) < 2 or (first := _FIRST.fullmatch(plain, 0, numbers[0].start())) is None:
        return None
    row: _Row = {}
    name = first["name"]
    for number, following in zip(numbers, [*numbers[1:], None], strict=True):
        form, end = (_LAST, len(plain)) if following is None else (_BETWEEN, following.start())
        behind = form.fullmatch(plain, number.end(), end)
        name = _FURTHER.get(name, name)
        if behind is None or name in row:
            return None
        unit = unit_of(behind["unit"]) if behind["unit"] else None
        value = Fraction(number.group())
        row[name] = (value, behind["unit"]) if unit is None else (value * unit.factor, unit.dimension)
        name = "" if following is None else behind["name"]
    return row
