"""References whose values may fill several blanks, so that their order may count: 9；20 for 3:4=( ):12=15:( )."""

from __future__ import annotations

from functools import lru_cache

from harness.answers.boxed import without_boxes
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.parse import parse
from harness.answers.grammar.spellings import numbers_blanks
from harness.grading.compare.named_quantities import names_quantities

ORDER_IS_OPEN = (
    "the answer has the values in another order, and nothing says whether the reference has the values of several "
    "blanks; the card does, by `rules: {ordered: true}` or `rules: {ordered: false}`"
)
"""Step of a comparison that leaves open whether the order of values counts."""

_NOT_BARE = frozenset(("list", "tuple", "set", "interval", "union", "bracket", "matrix", "rel", "member", "congruence"))
"""Kinds of nodes that are no bare value."""


@lru_cache(maxsize=1_024)
def separates_blanks(reference: str) -> bool:
    """Whether a text is bare values between semicolons, 9；20, which may be those of several blanks, or numbers them.

    Values with names, and points, pairs and sets, say themselves which is which.
    """
    text = without_boxes(reference)
    if numbers_blanks(text):
        return True
    if ";" not in text and "；" not in text:
        return False
    try:
        node = parse(text, list_commas=True)
    except (Unreadable, RecursionError):
        return False
    return node.op == "list" and not names_quantities(text) and not any(item.op in _NOT_BARE for item in node.args)
