"""Rules that a row of the data states for its own answer, so that one table may hold questions of several kinds.

A cell names them by words of a closed list: a form in which the answer must be written (`simplest`, `factored` …), and
`ordered` or `unordered`. No other rule of a card can stand in a row: a row must not choose the code that grades it.
"""

from __future__ import annotations

import re
from typing import Any, cast, get_args

import msgspec

from harness.core.errors import near_names
from harness.core.inert import quoted
from harness.core.records import Form, GradeRules, RuleOfRow

FORMS: tuple[Form, ...] = get_args(Form)

ORDERS = {"ordered": True, "unordered": False}
"""Words for the order of several values → `rules.ordered`."""

_BETWEEN = re.compile(r"[\s,，;；、]+")


def with_rules_of_row(rules: GradeRules, cell: Any) -> GradeRules:
    """The card's `rules` with those that a cell names; an empty cell changes none.

    Raises `ValueError` with the end of a sentence, before which the caller puts the row and the column.
    """
    if cell is None:
        return rules
    if not isinstance(cell, str):
        raise ValueError(f"must name rules by words ({_all_names()}), found {quoted(repr(cell))}")
    if not (names := [name for name in _BETWEEN.split(cell) if name]):
        return rules
    for name in names:
        if name not in (*FORMS, *ORDERS):
            near = near_names(name, (*FORMS, *ORDERS))
            raise ValueError(f"must name rules of a row ({_all_names()}) or be empty, found {quoted(name)!r}.{near}")
    forms = [cast("Form", name) for name in names if name not in ORDERS]
    if len(forms) > 1:
        raise ValueError(f"names {len(forms)} forms ({', '.join(forms)}); an answer has one")
    orders = {ORDERS[name] for name in names if name in ORDERS}
    if len(orders) > 1:
        raise ValueError(f"names both {' and '.join(ORDERS)}")
    stated: dict[RuleOfRow, Any] = {}
    if forms:
        stated["form"] = forms[0]
    if orders:
        stated["ordered"] = orders.pop()
    return msgspec.structs.replace(rules, **stated, of_row=tuple(stated))


def keep_rules_of_row(rules: GradeRules, stored: GradeRules) -> GradeRules:
    """The card's `rules` with those that the row itself stated, as they are `stored` in its question."""
    stated = {name: getattr(stored, name) for name in stored.of_row}
    return msgspec.structs.replace(rules, **stated, of_row=stored.of_row)


def _all_names() -> str:
    return ", ".join((*FORMS, *ORDERS))
