"""References whose values may fill several blanks, so that their order may count: 9；20 for 3:4=( ):12=15:( ).

Beside such a list an answer may have its values in brackets side by side, as they stand in the question: （9）（20）.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from harness.answers.boxed import without_boxes
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.parse import parse
from harness.answers.grammar.spellings import numbers_blanks
from harness.answers.grammar.tree import Node
from harness.answers.words import without_text_commands
from harness.core.records import GradeRules
from harness.grading.compare.named_quantities import names_quantities
from harness.grading.compare.scalars import Comparison
from harness.grading.compare.structures import same

ORDER_IS_OPEN = (
    "the answer has the values in another order, and nothing says whether the reference has the values of several "
    "blanks; the card does, by `rules: {ordered: true}` or `rules: {ordered: false}`"
)
"""Step of a comparison that leaves open whether the order of values counts."""

_NOT_BARE = frozenset(("list", "tuple", "set", "interval", "union", "bracket", "matrix", "rel", "member", "congruence"))
"""Kinds of nodes that are no bare value."""


Equal = Callable[[str, str, str, GradeRules], Comparison]
"""Function that compares a reference with an answer, by the kind of answer and the rules."""

_LAYOUT = re.compile(r"\\(?:left|right|q?quad)(?![A-Za-z])|\\[,;:! ()\[\]]|[$~\s]")
_IN_BRACKETS = r"[(（【\[]([^()（）【】\[\],，;；、。]{1,60})[)）】\]]"
_CLOSING = re.compile(r"[)）】\]]")
_MAX_CHARS = 600
_ROW = re.compile(rf"(?:{_IN_BRACKETS}){{2,8}}[.。]?")


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


@lru_cache(maxsize=1_024)
def separates_blanks(reference: str) -> bool:
    """Whether a text is bare values between semicolons, 9；20, which may be those of several blanks, or numbers them.

    Values with names, and points, pairs and sets, say themselves which is which.
    """
    text = without_boxes(reference)
    if numbers_blanks(text):
        return True
    return (";" in text or "；" in text) and bool(_values_listed(text, list_commas=True))
