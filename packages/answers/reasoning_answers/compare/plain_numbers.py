r"""Numbers that are read without the grammar: `-12`, `3/4`, `\frac{3}{4}`, `0.75`. Most answers and references are such
numbers.

A tree takes fifty times as long. Limits on the digits keep every value exact and cheap; a longer decimal may stand for
a nonterminating one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_INTEGER = r"[1-9][0-9]{0,14}"
_NUMBER = re.compile(
    rf"(-?{_INTEGER}|0)"
    rf"|(-?)(?:\\[dt]?frac\{{({_INTEGER})\}}\{{({_INTEGER})\}}|({_INTEGER})/({_INTEGER}))"
    r"|(-?(?:0|[1-9][0-9]{0,5})\.)([0-9]{1,6})"
)


class PlainNumber(NamedTuple):
    """The number top / bottom, not reduced; bottom > 0. is_fraction, is_decimal: its form, if not an integer."""

    top: int
    bottom: int
    is_fraction: bool = False
    is_decimal: bool = False


@lru_cache(maxsize=1_024)
def plain_number(text: str) -> PlainNumber | None:
    """The number that makes up the whole of `text`; None for any other text."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    integer, sign, top, bottom, left, right, whole, places = match.groups()
    if integer is not None:
        return PlainNumber(int(integer), 1)
    if whole is not None:
        return PlainNumber(int(whole[:-1] + places), 10 ** len(places), is_decimal=True)
    return PlainNumber(int(sign + (top or left)), int(bottom or right), is_fraction=True)
