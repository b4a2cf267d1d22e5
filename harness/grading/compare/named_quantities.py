r"""Quantities with names, written in a row in Chinese: 长8厘米，宽5厘米, 6只鸡和4只兔, 商5余2, 7袋，还剩3个.

A text is such a row if it is nothing but items of one of these three forms, with commas, 和 or spaces between them, and
LaTeX's commands for words anywhere:

    a name, then its number, perhaps a unit    鸡6只 · 长：8厘米 · 鸡有6只; the first item may lack its name
    a number, a classifier, then what counts   6只鸡 · 24名男生
    a quotient and a remainder                 5余2 · 5……2 · （5）……（2） · 17÷3=5……2, if 17 is 3·5+2 and 2 is below 3

A name keeps its words, but for those of closed lists: a figure with 的 before it (长方形的长), a verb before the first
name or in its place (有鸡6只; 可以装7袋), and the second names of `_FURTHER`. Two rows with the same names are equal if
each name has the same number in the same unit, and differ if some name has another integer. All else stays undecided,
for another name may be another word for the same thing, and another classifier may count the same things.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from harness.answers.grammar.units import is_counted, unit_of
from harness.answers.words import without_text_commands

MAX_CHARS = 120
"""Longest text that is read as a row of quantities, in characters."""

_HAN = r"[\u3400-\u9fff]"
_NAME = rf"(?P<name>{_HAN}{{{{{{least}},9}}}}?)\s*(?:(?:分得|分到|[是为有:：=＝])\s*)?"
_UNIT = rf"\s*(?P<unit>{_HAN}{{0,4}}?|[a-zA-Z]{{1,3}})\s*"
_MARK = r"(?:[,，、；;]|和|\s)\s*"
_FIRST = re.compile(_NAME.format(least=0))
_BETWEEN = re.compile(rf"{_UNIT}(?:{_MARK}|(?=余|还?剩)){_NAME.format(least=1)}")
_LAST = re.compile(rf"{_UNIT}[。.]?")
_COUNTED = re.compile(rf"\s*(?P<unit>{_HAN})(?P<name>{_HAN}{{1,6}}?)\s*(?:{_MARK}|[。.]?\Z)")
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,12})?")
_DECIMAL = re.compile(r"\d\.\d")
_LAYOUT = re.compile(r"[\s${}~]+|\\[,;:! ]")
_DOTS = r"(?:…{1,2}|\.{3,6}|⋯{1,2}|(?:\\[cl]?dots\s*){1,2})"
_DIVISION = re.compile(r"(?P<top>\d{1,9})\s*[÷/]\s*(?P<by>\d{1,9})\s*(?:[=＝]|的(?=商))\s*")
_BLANK = r"[(（]?\s*(?P<{}>\d{{1,12}})\s*[)）]?"
_REMAINDER = re.compile(rf"商?{_BLANK.format('quotient')}\s*(?:余|{_DOTS})\s*{_BLANK.format('rest')}[。.]?")
OF_FIGURE = re.compile("(?:这个|该|此)?(?:长方形|正方形|长方体|三角形|平行四边形|梯形|菱形|圆柱|圆锥)的")
_HAS = re.compile("(?:笼子?[里中])?(?:有|租|买)了?(?=.)")
_BEFORE_FIRST = re.compile(rf"{_HAS.pattern}|(?:可以?|能)?(?:装|做|分|租|买)(?:成|满|了|好|得)?(?=$)")
"""A verb before the first name, or in place of one: 有鸡6只，兔4只; 可以装7袋，还剩3个."""

_FURTHER = {
    "余数": "余", "剩": "余", "还剩": "余", "剩余": "余", "剩下": "余", "还余": "余", "还剩下": "余",
    "男": "男生", "女": "女生",
}  # fmt: skip
"""Name → another name of the same quantity."""

_OF_PERSONS = {"名": "人", "位": "人"}
"""Classifier of persons → the word by which they are counted most often."""


class _NamedQuantity(NamedTuple):
    """A number in base units, and the dimension of its unit; or the unit or the classifier as it is written. bare: the
    number as it is written.
    """

    number: Fraction
    unit: object
    bare: Fraction


_Row = dict[str, _NamedQuantity]
"""Name → its quantity."""


def same_named_quantities(reference: str, answer: str) -> bool | None:
    """Whether two texts are rows that give the same names the same quantities, in any order; None if no rule can tell.

    False only if all numbers are integers: others may be rounded.
    """
    if reference.isascii() and answer.isascii():
        return None
    left, right = row_of(reference), row_of(answer)
    if left is None or right is None or left.keys() != right.keys():
        return None
    # A row without any unit gives the numbers of the other one, as 8 beside 8厘米 does.
    units = [any(quantity.unit != "" for quantity in row.values()) for row in (left, right)]
    is_bare = units[0] and not units[1]
    if not is_bare and not all(_same_units(left[name].unit, right[name].unit) for name in left):
        return None
    if is_bare:
        return True if all(left[name].bare == right[name].bare for name in left) else None
    if all(left[name].number == right[name].number for name in left):
        return True
    return None if any(_DECIMAL.search(text) for text in (reference, answer)) else False


def names_quantities(text: str) -> bool:
    """Whether a text is a row of quantities with names."""
    return not text.isascii() and row_of(text) is not None


def row_of(text: str) -> _Row | None:
    """Return the quantities of a row by their names; None if the text is no row of two quantities or more."""
    plain = _LAYOUT.sub(" ", without_text_commands(text)).strip() if len(text) <= MAX_CHARS else ""
    division = _DIVISION.match(plain)
    if division is None:
        return _quotient_and_rest(plain) or _row_of_names(plain) or _row_of_counts(plain)
    plain = plain[division.end() :]
    row = _quotient_and_rest(plain) or _row_of_names(plain)
    if row is None or row.keys() != {"商", "余"}:
        return None
    quotient, rest, by = row["商"].number, row["余"].number, int(division["by"])
    # A wrong calculation states no result.
    return row if rest < by and int(division["top"]) == by * quotient + rest else None


def _quotient_and_rest(text: str) -> _Row | None:
    division = _REMAINDER.fullmatch(text)
    if division is None:
        return None
    names = {"商": "quotient", "余": "rest"}
    return {
        name: _NamedQuantity(Fraction(division[group]), "", Fraction(division[group])) for name, group in names.items()
    }


def _row_of_names(text: str) -> _Row | None:
    """Return the row of a text of names, each before its number."""
    numbers = list(_NUMBER.finditer(text))
    if len(numbers) < 2 or (first := _FIRST.fullmatch(text, 0, numbers[0].start())) is None:
        return None
    row: _Row = {}
    verb = _BEFORE_FIRST.match(first["name"])
    name = first["name"] if verb is None else first["name"][verb.end() :]
    for number, following in zip(numbers, [*numbers[1:], None], strict=True):
        form, end = (_LAST, len(text)) if following is None else (_BETWEEN, following.start())
        behind = form.fullmatch(text, number.end(), end)
        if behind is None or not _put(row, name, number.group(), behind["unit"]):
            return None
        name = "" if following is None else behind["name"]
    return row


def _row_of_counts(text: str) -> _Row | None:
    """Return the row of a text of numbers, each before its classifier and the name of what is counted."""
    row: _Row = {}
    has = _HAS.match(text)
    position = 0 if has is None else has.end()
    while position < len(text):
        number = _NUMBER.match(text, position)
        behind = None if number is None else _COUNTED.match(text, number.end())
        if number is None or behind is None or not is_counted(behind["unit"]):
            return None
        if not _put(row, behind["name"], number.group(), behind["unit"]):
            return None
        position = behind.end()
    return row if len(row) > 1 else None


def _put(row: _Row, name: str, number: str, unit: str) -> bool:
    """Add a quantity to a row; False if the row has its name already."""
    name = OF_FIGURE.sub("", name)
    name = _FURTHER.get(name, name)
    if name in row:
        return False
    measure = unit_of(unit) if unit else None
    value = Fraction(number)
    row[name] = (
        _NamedQuantity(value, unit, value)
        if measure is None
        else _NamedQuantity(value * measure.factor, measure.dimension, value)
    )
    return True


def _same_units(left: object, right: object) -> bool:
    """Whether two units are one: the same dimension, the same words, or a classifier with and without its noun."""
    if not isinstance(left, str) or not isinstance(right, str):
        return left == right
    short, long = sorted((_OF_PERSONS.get(left, left), _OF_PERSONS.get(right, right)), key=len)
    return short == long or (len(short) == 1 and long.startswith(short) and is_counted(short) and is_counted(long))
