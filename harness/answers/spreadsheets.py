"""Cells that a spreadsheet makes of fractions and ratios: Excel turns 1/4 into 1月4日 or 4-Jan, and 5:3 into 5:03."""

from __future__ import annotations

import re

_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_CHANGED = re.compile(
    rf"(?:1[0-2]|0?[1-9])月(?:[12]\d|3[01]|0?[1-9])日|(?:[12]\d|3[01]|0?[1-9])-(?:{_MONTH})|(?:{_MONTH})-\d\d"
    r"|\d{1,2}:0[1-9]|\d{1,2}:[0-5]\d:[0-5]\d"
)
_NUMBER_OR_RATIO = re.compile(r"-?\d+(?:\.\d+)?(?:[/:：∶]\d+(?:\.\d+)?)*")

EXAMPLES = "Excel makes 1月4日 of 1/4, and 5:03 of 5:3"
"""The words by which a message explains such a cell."""


def may_be_changed(cell: str) -> bool:
    """Whether a whole cell is a day of a month, or a time of day that no ratio is: no ratio has a part such as 03."""
    return _CHANGED.fullmatch(cell.strip()) is not None


def is_number_or_ratio(cell: str) -> bool:
    """Whether a whole cell is a number, a fraction or a ratio in digits."""
    return not may_be_changed(cell) and _NUMBER_OR_RATIO.fullmatch(cell.strip()) is not None
