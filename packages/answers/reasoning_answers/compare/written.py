r"""Answers that are compared as written, since they are not numbers: dates, times of day, chemical formulas,
sequences of brackets.
"""

from __future__ import annotations

import re

from reasoning_answers.words import without_layout, without_text_commands

_DATE = re.compile(r"\s*(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4})\s*")
"""A date in digits, 2024-05-01 or 01/05/2024."""

_TIME = re.compile(r"(?i)(\d{1,2})(?=:|[ap])(?::(\d\d)(?::(\d\d))?)?(?:([ap])\.?m\.?)?")
"""A time of day without blanks, 3:30p.m. or 15:30."""

_FORMULA = re.compile(r"(?:[A-Z][a-z]?\d*|\([A-Za-z\d]+\)\d*){1,20}(?:\^?\d*[+-])?")
"""A chemical formula without layout: CO2, Fe^3+."""

_COUNTED = re.compile(r"\d|[+-]\Z")
"""A number of atoms or a charge, which turns letters into a formula."""

_LAYOUT = re.compile(r"\\ce(?![A-Za-z])|[\s{}_]")
_SIGNS = re.compile(r"[\s!-/:-@\[\]^_`{|}~]+")
"""A text of nothing but ASCII punctuation."""


def same_dates(reference: str, answer: str) -> bool | None:
    """Compare dates in digits, 2024-05-01, which are not differences or quotients; None if a side is not a date."""
    dates = [_DATE.fullmatch(text) for text in (reference, answer)]
    numbers = [[int(number) for number in re.findall(r"\d+", date[0])] for date in dates if date is not None]
    return numbers[0] == numbers[1] if len(numbers) == 2 else None


def is_date(text: str) -> bool:
    """Whether a text is a date in digits."""
    return _DATE.fullmatch(text) is not None


def same_times(reference: str, answer: str) -> bool | None:
    """Compare times of day, at least one of them marked a.m. or p.m.: 3:30 p.m. and 15:30 are equal.

    None if neither is marked, if a side is not a time, or if only the mark is missing: 3:30 and 3:30 p.m.
    """
    times = [_TIME.fullmatch(_bare(text)) for text in (reference, answer)]
    first, second = times
    if first is None or second is None or not (first[4] or second[4]):
        return None
    seconds = [_seconds(time) for time in (first, second)]
    if first[4] and second[4]:
        return seconds[0] == seconds[1]
    is_open = int((first if second[4] else second)[1]) in range(1, 13)  # may be before or after noon
    if is_open:
        return None if (seconds[0] - seconds[1]) % 43_200 == 0 else False
    return seconds[0] == seconds[1]


def _seconds(time: re.Match[str]) -> int:
    """Return the seconds since midnight of a match of `_TIME`."""
    hour, minute, second = (int(part or 0) for part in time.group(1, 2, 3))
    if time[4]:
        hour = hour % 12 + (12 if time[4] in "pP" else 0)
    return hour * 3_600 + minute * 60 + second


def same_formulas(reference: str, answer: str) -> bool | None:
    r"""Compare chemical formulas: CO2, `\text{CO}_2` and `\ce{CO2}` are one. None if a side is not a formula, or if
    both have only letters.
    """
    formulas = [_bare(text) for text in (reference, answer)]
    if not all(map(_FORMULA.fullmatch, formulas)) or not any(map(_COUNTED.search, formulas)):
        return None
    return formulas[0].replace("^", "") == formulas[1].replace("^", "")


def are_signs(reference: str, answer: str) -> bool:
    """Whether both sides are nothing but punctuation, such as a sequence of brackets, which must match exactly."""
    return _SIGNS.fullmatch(reference) is not None and _SIGNS.fullmatch(answer) is not None


def _bare(text: str) -> str:
    """Return a text without layout, blanks and the braces and underscores of subscripts."""
    return _LAYOUT.sub("", without_layout(without_text_commands(text)))
