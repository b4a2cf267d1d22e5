r"""Answers that state more than one thing, of which the reference is one.

    a value restated in another unit     60升（60000毫升） · 2.05米，即205厘米      either value, if both are equal
    a conclusion behind its premise      `4 - 4m > 0`, so `m < 1`               the conclusion, if that decides
    conditions between commas            `x \ge 2, x < 5`                       the verdict, if "and" and "or" agree
    further values and steps             长15厘米，宽12厘米 · `x - 8 = 0, x = 8`      undecided, if one is right

What was asked for is not read, so that a value among others is neither right nor wrong. Nothing is taken for the answer
that only a guess could tell from the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.parse import parse
from harness.answers.grammar.tree import Node, symbols
from harness.answers.grammar.units import unit_of
from harness.answers.words import without_text_commands
from harness.core.records import GradeRules
from harness.grading.compare.alternatives import items_of
from harness.grading.compare.equations import is_equation, statement
from harness.grading.compare.realsets import NotASet, is_inequality, letters, real_set
from harness.grading.compare.scalars import Comparison
from harness.grading.compare.structures import same

MAX_CHARS = 400
"""Longest answer that is searched for a second statement, in characters."""

# Every pattern ends at a sign that the part before it excludes, so that no answer can make it backtrack for long.
_RESTATES = r"(?:即|也就是|也即|或|=|or\b|that is,?|i\.e\.,?)"
_STATES_TWICE = re.compile("[(（即=]|就是")
_BRACKET = re.compile(rf"([^()（）]+)[(（]\s*{_RESTATES}?\s*([^()（）]+)[)）]\s*\}}?\s*[.。]?\s*")
BEHIND_COMMA = re.compile(r"([^,，=]+)[,，]\s*(?:即|也就是|也即)(?:是|为)?\s*([^,，=]+?)[.。]?\s*")
_EQUATION = re.compile(r"([^=]+)=([^=]+)")
_NUMBER_BEGINS = re.compile(r"(?<![\d.,/{}^_])(?:\d|\\[dt]?frac(?=\s*\{))")
_NUMBER_AND_LETTERS = re.compile(r"(\d[\d.,/]*)\s*([A-Za-zµμ][A-Za-zµμ/^²³·0-9 ]*)")
_CONCLUDES = re.compile(
    r"(?<=[$\s,，;；。.])\s*(?P<text>\\text\s*\{\s*)?"
    r"(?:所以|因此|因而|从而|于是|故|∴|\\therefore(?![a-z])|(?:and\s+)?(?:so|hence|thus|therefore)\b)\s*[,，]?\s*(?(text)\})"
)
"""Words behind which a conclusion stands."""

_MATH_SIGNS = "$ ~"

Equal = Callable[[str, str], Comparison]
"""Function that compares a reference with an answer, both given as text."""


class _Restated(NamedTuple):
    """An answer that states a quantity twice.

    spellings: the answer without the second quantity, as it stands and with its unit marked, and the second quantity in
    both ways: 3.05吨=3050千克 fills a blank for 3050. first, second: both quantities.
    """

    spellings: tuple[str, ...]
    first: Node
    second: Node


def compare_claims(reference: str, answer: str, rules: GradeRules, equal: Equal) -> Comparison:
    """Compare by `equal`, with a quantity that a side states twice as one quantity, and a conclusion by itself."""
    sides: list[tuple[str, ...]] = []
    for text in (reference, answer):
        twice = _restatement(text)
        if twice is not None and same(twice.first, twice.second, rules).equal is not True:
            return Comparison(None, "restated")
        sides.append((text,) if twice is None else twice.spellings)
    results = [_with_conclusion(left, right, equal) for left in sides[0] for right in sides[1]]
    return next((result for result in results if result.equal), results[-1])


# --- a quantity in two units ---
def _restatement(text: str) -> _Restated | None:
    """Read an answer whose quantity is stated again in brackets, behind 即 or an equals sign; None for any other."""
    if len(text) > MAX_CHARS or _STATES_TWICE.search(text) is None:
        return None
    plain = without_text_commands(text).strip(_MATH_SIGNS)
    for form in (_BRACKET, BEHIND_COMMA, _EQUATION):
        match = form.fullmatch(plain)
        second = _quantity(match[2]) if match is not None else None
        if match is None or second is None:
            continue
        first = match[1].rstrip(" ,，$~")
        begins = [0] if form is _EQUATION else [begin.start() for begin in _NUMBER_BEGINS.finditer(first)]
        for begin in begins:
            if (quantity := _quantity(first[begin:])) is not None:
                spellings = (first, first[:begin] + _with_unit(first[begin:]), match[2], _with_unit(match[2]))
                return _Restated(spellings, quantity, second)
    return None


def _quantity(text: str) -> Node | None:
    """Return the tree of a number with a known unit; None for any other text."""
    try:
        node = parse(_with_unit(text.strip(" $~")))
    except (Unreadable, RecursionError):
        return None
    return node if node.op == "quantity" and unit_of(node.args[1]) is not None and not symbols(node) else None


def _with_unit(text: str) -> str:
    r"""Return `1.5\text{ m}` for `1.5 m`, a unit beside a second quantity; any other text as it is."""
    match = _NUMBER_AND_LETTERS.fullmatch(text.strip(" $~"))
    return text if match is None or unit_of(match[2]) is None else rf"{match[1]}\text{{ {match[2].strip()}}}"


# --- a conclusion ---
def _with_conclusion(reference: str, answer: str, equal: Equal) -> Comparison:
    """Compare an answer by `equal`; a conclusion in it replaces the equations and inequalities before it.

    The whole may also be a list, such as `x = 3, so y = 4`. Where it is right and its conclusion is not, nobody knows.
    """
    conclusion = _conclusion(answer) if _conclusion(reference) is None else None
    if conclusion is None:
        return equal(reference, answer)
    result = equal(reference, conclusion)
    return result if result.equal or equal(reference, answer).equal is False else Comparison(None, "conclusion")


def _conclusion(answer: str) -> str | None:
    """Return the conclusion of an answer whose text before it is equations and inequalities that give no value to
    another name; None for any other answer.
    """
    if len(answer) > MAX_CHARS:
        return None
    conclusions = list(_CONCLUDES.finditer(answer, 1))
    if not conclusions:
        return None
    premise, conclusion = answer[: conclusions[-1].start()].rstrip(" ,，;；。."), answer[conclusions[-1].end() :]
    try:
        steps, concluded = items_of(parse(premise)), items_of(parse(conclusion))
    except (Unreadable, RecursionError):
        return None
    if not all(step.op == "rel" for step in steps):
        return None
    labels = {label for item in concluded if (label := _label(item)) is not None}
    others = {label for step in steps if (label := _label(step)) is not None and not _is_to_solve(step)} - labels
    return None if others else conclusion


# --- conditions, steps and further values ---
def with_further_claims(
    result: Comparison, reference: Node, answer: Node, rules: GradeRules, *, joined: bool
) -> Comparison:
    """Return `result`, the comparison of two trees, or what the claims of a list make of it.

    joined: the items of the answer are joined by words, "and" or "or", and not by commas only.
    """
    if answer.op != "list":
        return result
    if not joined and (bounds := _compare_bounds(reference, answer, rules)) is not None:
        result = bounds
    if result.equal is False and _states_beside(reference, answer, rules):
        return Comparison(None, "names")
    return result


def _compare_bounds(reference: Node, answer: Node, rules: GradeRules) -> Comparison | None:
    r"""Compare inequalities of one letter between commas, which may be alternatives or hold together: `x \ge 2, x < 5`.

    A reading that holds for no number or for all is not meant. None if the answer or the reference is of another kind.
    """
    if not all(map(is_inequality, answer.args)) or len(set(map(letters, answer.args))) > 1 or reference.op == "list":
        return None
    together = Node("inter", answer.args)
    try:
        either, both = real_set(answer), real_set(together)
        line = real_set(Node("sym", ("R",)))
    except NotASet:
        return None
    readings = [answer] if either != line else []
    readings += [together] if both else []
    if not all(map(_is_bound, answer.args)):
        readings.append(Node("union", answer.args))  # beside `x - 1 > 0`, a step, `x \ne 1` may be all that is stated
    results = [same(reference, reading, rules) for reading in readings]
    if not results or any(result.equal != results[0].equal for result in results):
        return Comparison(None, "conditions")
    return results[0]


def _states_beside(reference: Node, answer: Node, rules: GradeRules) -> bool:
    """Whether a part of a list is the reference, and the rest are equations or inequalities about something else.

    The part is one item, or the items behind the first ones. The rest may name other values or be steps of the work.
    """
    items = answer.args
    parts = [(index, index + 1) for index in range(len(items))] + [
        (first, len(items)) for first in range(1, len(items) - 1)
    ]
    for begin, end in parts:
        part, rest = items[begin:end], items[:begin] + items[end:]
        if not all(_is_about_other(item, part) for item in rest):
            continue
        if same(reference, part[0] if len(part) == 1 else Node("list", part), rules).equal:
            return True
    return False


def _is_about_other(item: Node, part: tuple[Node, ...]) -> bool:
    """Whether an item beside `part` of a list is no further solution: it names another value, or the same one again, or
    it is an equation or inequality that is not solved for a letter.
    """
    if item.op != "rel":
        return False
    if is_inequality(item):
        return not _is_bound(item)
    label = _label(item)
    if label is None:
        return True
    named = [claim for claim in part if _label(claim) is not None]
    if len(named) < len(part):
        # A number without a name beside `x = 3` may be a further solution; an inequality is none.
        return all(_label(claim) is not None or claim.op in ("rel", "member") for claim in part)
    return all(_stem(label) != _stem(_label(claim)) or _value(item) == _value(claim) for claim in named)


def _label(item: Node) -> Node | None:
    """Return the name to which an equation gives a value; None for any other node."""
    parts = statement(item) if is_equation(item) else None
    return parts.labels[-1] if parts is not None and parts.labels else None


def _is_to_solve(item: Node) -> bool:
    """Whether a chain has letters in one of several values, as in `d = x - 8 = 0`: it is an equation for the letter."""
    parts = statement(item)
    return parts is not None and len(parts.values) > 1 and any(map(symbols, parts.values))


def _value(item: Node) -> Node:
    parts = statement(item)
    return item if parts is None else parts.values[-1]


def _stem(label: Node | None) -> object:
    """Return a name without its index, since `x_1` and `x_2` are solutions of one unknown."""
    return label.args[0].partition("_")[0] if label is not None and label.op == "sym" else label


def _is_bound(item: Node) -> bool:
    """Whether an inequality bounds a letter by numbers: `x < 5`, `2 < x < 5`, no `4 - 4m > 0`."""
    operands = item.args[0]
    return sum(operand.op == "sym" for operand in operands) == 1 and all(
        operand.op == "sym" or not symbols(operand) for operand in operands
    )
