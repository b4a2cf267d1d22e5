"""References whose values may fill several blanks, so that their order may count: 9；20 for 3:4=( ):12=15:( ).

Beside such a list an answer may have its values in brackets side by side, as they stand in the question: （9）（20）.
It may also join them as the question does: 2小时30分 for 2.5小时=( )小时( )分, 7余1 for 57÷8=( )……( ). If it writes the
numbers of the list and no others, in the order of the list, each blank has its number, with a unit that the list lacks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from msgspec.structs import replace

from harness.answers.boxed import without_boxes
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.parse import parse
from harness.answers.grammar.spellings import numbers_blanks
from harness.answers.grammar.tree import Node, num
from harness.answers.grammar.units import smaller_unit, unit_of
from harness.answers.words import without_text_commands
from harness.core.records import GradeRules
from harness.grading.compare.conventions import allows
from harness.grading.compare.named_quantities import names_quantities, row_of
from harness.grading.compare.scalars import Comparison
from harness.grading.compare.structures import same

_ORDER_IS_OPEN = (
    "the answer has the values in another order, and nothing says whether the reference has the values of several "
    "blanks; the card does, by `rules: {ordered: true}` or `rules: {ordered: false}`"
)
"""Step of a comparison that leaves open whether the order of values counts."""

_MIXED_UNITS = "the reference has no units, and the answer has two units of one kind of quantity"
"""Step of a comparison that leaves open whether the values have the units of their blanks."""

_NOT_BARE = frozenset(("list", "tuple", "set", "interval", "union", "bracket", "matrix", "rel", "member", "congruence"))
"""Kinds of nodes that are no bare value."""


Equal = Callable[[str, str, str, GradeRules], Comparison]
"""Function that compares a reference with an answer, by the kind of answer and the rules."""

_LAYOUT = re.compile(r"\\(?:left|right|q?quad)(?![A-Za-z])|\\[,;:! ()\[\]]|[$~\s]")
_IN_BRACKETS = r"[(（【\[]([^()（）【】\[\],，;；、。]{1,60})[)）】\]]"
_CLOSING = re.compile(r"[)）】\]]")
_MAX_CHARS = 600
_ROW = re.compile(rf"(?:{_IN_BRACKETS}){{2,8}}[.。]?")
_SEPARATOR = re.compile("[;；,，、]")
_DECIMAL_COMMA = re.compile(r"\d,\d")
_NUMBER = r"-?\d{1,12}(?:\.\d{1,12})?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:\s*[;；,，、]\s*{_NUMBER})+")
_MARKS_OF_UNITS = {"²": "^2", "³": "^3", r"^{\circ}": "°", r"^\circ": "°", r"^{\prime}": "′", r"^\prime": "′", "'": "′"}
_UNIT_MARK = re.compile("|".join(map(re.escape, _MARKS_OF_UNITS)))
_PART = re.compile(
    r" ?零?(\d{1,12}(?:\.\d{1,12})?) ?((?:[A-Za-z]{1,8}|(?:(?!零)[\u3400-\u9fff]){1,4})(?:\^[23])?|[°′]) ?"
)
_PARTS = re.compile(rf"(?:{_PART.pattern}){{2,4}}[.。]?")
_RATIO = re.compile(rf"{_NUMBER}(?:[:：∶比]{_NUMBER})+")
_SMALLER = frozenset(zip("元块角毛度°", "分分分分分′", strict=True))
"""Pairs of a unit and a smaller one, 元 and 分, whose sign may also mean a unit of something else: a minute."""


@lru_cache(maxsize=1_024)
def _node(text: str, *, list_commas: bool = False) -> Node | None:
    """Return the tree of a text; None if it cannot be read."""
    try:
        return parse(text, list_commas=list_commas)
    except (Unreadable, RecursionError):
        return None


def _values_listed(reference: str, *, list_commas: bool) -> tuple[Node, ...]:
    """Return the bare values of a list, 9；20; nothing for any other text: a number, a point, values with names."""
    text = without_boxes(reference)
    node = _node(text, list_commas=list_commas)
    if node is None or node.op != "list" or names_quantities(text) or any(item.op in _NOT_BARE for item in node.args):
        return ()
    return node.args


def values_in_brackets(answer: str) -> tuple[str, ...]:
    """Return the values of an answer that is nothing but values in brackets side by side: （9）（20）; else nothing."""
    if len(answer) > _MAX_CHARS or len(_CLOSING.findall(answer)) <= 1:
        return ()  # most answers
    row = _ROW.fullmatch(_LAYOUT.sub("", without_text_commands(without_boxes(answer))))
    return () if row is None else tuple(re.findall(_IN_BRACKETS, row.group()))


def compare_row(reference: str, answer: str, kind: str, rules: GradeRules, equal: Equal) -> Comparison | None:
    """Compare values in brackets side by side with a list, as the list of these values; None for all others.

    equal: compares the list. The reference's values among more or fewer ones are no proof of another answer.
    """
    values = values_in_brackets(answer)
    listed = _values_listed(reference, list_commas=kind == "multiple") if values else ()
    if not listed:
        return None
    result = equal(reference, "；".join(values), kind, rules)
    if result.equal is False and len(values) != len(listed):
        pairs = ((item, _node(value)) for item in listed for value in values)
        if any(node is None or same(item, node, rules).equal is not False for item, node in pairs):
            return Comparison(None, "list", ("the answer has more or fewer values in brackets than the reference",))
    step = "beside a list, values in brackets side by side are a list, and no product"
    return result._replace(steps=(step, *result.steps))


def values_joined(text: str) -> tuple[str, ...]:
    """Return the numbers that a text joins by their units, or as a quotient and a remainder, with the values beside
    them: 2, 30 and 150分 of 2小时30分，150分; nothing for a text that joins no numbers.
    """
    if len(text) > _MAX_CHARS or not any(map(str.isdigit, text)):
        return ()
    plain = _LAYOUT.sub(" ", without_text_commands(without_boxes(text))).strip()
    plain = re.sub(" +", " ", _UNIT_MARK.sub(lambda mark: _MARKS_OF_UNITS[mark[0]], plain))
    if whole := _numbers_of(plain):
        return whole
    items = _SEPARATOR.split(plain)
    numbers = [_numbers_of(item) for item in items]
    return (
        tuple(value for item, row in zip(items, numbers, strict=True) for value in row or (item,))
        if any(numbers)
        else ()
    )


_LAST_BARE = re.compile(rf"(?:答[:：])?((?:{_PART.pattern}){{1,3}})(\d{{1,12}}(?:\.\d{{1,12}})?)[.。]?")
_NUMBER_IN_BRACKETS = re.compile(r"[（(]\s*(\d+(?:\.\d+)?)\s*[)）]")


def _values_with_last_bare(text: str) -> tuple[str, ...]:
    """Return 2 and 24 of 2小时24 and （2）小时（24）, where the question prints the last unit; nothing for others."""
    bare = _LAST_BARE.fullmatch(_NUMBER_IN_BRACKETS.sub(r"\1", text.strip())) if len(text) <= _MAX_CHARS else None
    parts = [] if bare is None else _PART.findall(bare[1])
    if bare is None or not all(unit_of(unit) for _, unit in parts):
        return ()
    return (*(number for number, _ in parts), bare.groups()[-1])


@lru_cache(maxsize=1_024)
def joins_parts(text: str) -> bool:
    """Whether a text is one value of parts: 3小时20分, 7余1, 3:2."""
    plain = _LAYOUT.sub("", without_text_commands(text))
    return _RATIO.fullmatch(plain) is not None or bool(_numbers_of(plain))


def joins_units(text: str) -> bool:
    """Whether a text is one quantity in several units: 3小时20分, 12元5角."""
    plain = _LAYOUT.sub("", without_text_commands(text))
    return _PARTS.fullmatch(plain) is not None and bool(_numbers_of(plain))


def _numbers_of(text: str) -> tuple[str, ...]:
    """Return 2 and 30 of 2小时30分 or 2.5小时=2小时30分, 7 and 1 of 7余1 or 57÷8=7……1; nothing for any other text."""
    row = row_of(text)
    if row is not None and row.keys() == {"商", "余"}:
        return str(row["商"].bare), str(row["余"].bare)
    premise, _, joined = text.rpartition("=")
    parts = _PART.findall(joined) if _PARTS.fullmatch(joined) else []
    units = pairwise(unit for _, unit in parts)
    if not parts or not all(pair in _SMALLER or smaller_unit(*pair) for pair in units):
        return ()
    if premise and not _is_true(text):
        return ()
    return tuple(number for number, _ in parts)


def _is_true(equation: str) -> bool:
    """Whether all sides of an equation have one value: a false one states no result."""
    node = _node(equation)
    if node is None or node.op != "rel" or set(node.args[1]) != {"="}:
        return False
    return all(same(left, right, GradeRules()).equal for left, right in pairwise(node.args[0]))


def compare_joined(reference: str, answer: str, kind: str, rules: GradeRules, equal: Equal) -> Comparison | None:
    """Compare numbers that one side joins by their units, or as quotient and remainder, with a list of plain numbers.

    None unless the list has these numbers in this order, and no others: the texts are then compared as they are. A
    fraction of two numbers with a semicolon may fill ( )/( ), or be one value: it is undecided, and so is 2,30, which
    may have a decimal comma.
    """
    if not allows(rules, "units_dropped"):
        return None
    for listed, joined in ((reference, answer), (answer, reference)):
        if _NUMBERS.fullmatch(listed) is None:
            continue  # most pairs
        items = re.findall(_NUMBER, listed)
        numbers = values_joined(joined) or (_values_with_last_bare(joined) if joined is answer else ())
        if len(items) == len(numbers) and equal(listed, "；".join(numbers), kind, replace(rules, ordered=True)).equal:
            if _DECIMAL_COMMA.search(listed):
                return Comparison(None, "list", (f"{listed} may be one number with a comma in it",))
            return Comparison(True, "list", ("the numbers of the list stand in the other text, in the same order",))
        if listed is reference and separates_blanks(reference) and _is_fraction_of(items, answer, rules):
            return Comparison(None, "list", ("a fraction of the listed numbers may fill two blanks, or be one value",))
    return None


def _is_fraction_of(items: list[str], answer: str, rules: GradeRules) -> bool:
    """Whether an answer is the quotient or the ratio of the numbers, in their order."""
    node = _node(without_boxes(answer))
    if node is None or node.op not in ("div", "ratio") or len(node.args) != len(items):
        return False
    return all(same(num(Fraction(item)), value, rules).equal for item, value in zip(items, node.args, strict=True))


def left_open(reference: str, answer: str, rules: GradeRules, in_order: Callable[[], Comparison]) -> Comparison | None:
    """Return why equal values need not be right: units of two sizes, or another order of blanks; None if they are.

    in_order: compares the two with the order of the values.
    """
    if _mixes_units(reference, answer):
        return Comparison(None, "list", (_MIXED_UNITS,))
    may_count = rules.ordered is None and (separates_blanks(reference) or numbers_blanks(without_boxes(answer)))
    return Comparison(None, "order", (_ORDER_IS_OPEN,)) if may_count and not in_order().equal else None


def _mixes_units(reference: str, answer: str) -> bool:
    """Whether an answer has two units of one dimension, 15米；45厘米, beside a list of bare numbers: the unit of one
    blank at least is another one.
    """
    listed = _values_listed(reference, list_commas=True)
    node = _node(without_boxes(answer), list_commas=True) if listed else None
    if node is None or node.op != "list" or any(item.op == "quantity" for item in listed):
        return False
    units = {unit for item in node.args if item.op == "quantity" and (unit := unit_of(item.args[1])) is not None}
    return len(units) > len({unit.dimension for unit in units})


@lru_cache(maxsize=1_024)
def separates_blanks(reference: str) -> bool:
    """Whether a text is bare values between semicolons, 9；20, which may be those of several blanks, or numbers them.

    Values with names, and points, pairs and sets, say themselves which is which.
    """
    text = without_boxes(reference)
    if numbers_blanks(text):
        return True
    return (";" in text or "；" in text) and bool(_values_listed(text, list_commas=True))
