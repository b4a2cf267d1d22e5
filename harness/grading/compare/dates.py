"""Days of the calendar: `May 5`, `5 May 2024`, `on May 5th`, `2024-05-05`, 2024.5.5, 5月5日, 五月五日."""

from __future__ import annotations

import calendar
import re
from typing import NamedTuple

from harness.answers.grammar.numerals import number_in_words
from harness.answers.words import without_text_commands
from harness.grading.compare.scalars import Comparison

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_NAME = "|".join(f"{month}|{month[:3]}" for month in _MONTHS)
_YEAR = r"(?:,?\s*([12]\d{3}))?"
_MONTH_FIRST = re.compile(rf"(?:on\s+)?({_NAME})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?{_YEAR}")
_DAY_FIRST = re.compile(rf"(?:on\s+)?(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_NAME})\.?{_YEAR}")
_NUMBERS = re.compile(
    r"([12]\d{3})(?P<mark>[-./])(\d{1,2})(?P=mark)(\d{1,2})|(?:([12]\d{3})年)?(\d{1,2})月(\d{1,2})[日号]"
)
_CHINESE = re.compile(
    r"(?:([零〇一二三四五六七八九]{4}|[12]\d{3})年)?([一二三四五六七八九十]{1,2}"
    r"|\d{1,2})月([一二三四五六七八九十]{1,3}|\d{1,2})[日号]"
)
_DIGITS = str.maketrans("零〇一二三四五六七八九", "00123456789")
MAX_CHARS = 60
"""Longest text that may be a date, in characters."""


class Day(NamedTuple):
    """A day; year: None where the text has none."""

    month: int
    day: int
    year: int | None


def day_of(text: str) -> Day | None:
    """Return the day that the whole of `text` writes; None if it writes none, or one that does not exist: 31 April."""
    day = _written_day(text)
    if day is None or not 1 <= day.month <= len(_MONTHS):
        return None
    # A text without a year is read as of a leap year, so that 29 February is a day.
    return day if 1 <= day.day <= calendar.monthrange(day.year or _LEAP_YEAR, day.month)[1] else None


_LEAP_YEAR = 2000


def _written_day(text: str) -> Day | None:
    """Return the day that the whole of `text` writes, even one that does not exist; None if it writes none."""
    if len(text) > MAX_CHARS:
        return None
    plain = re.sub(r"[{}$\s]+", " ", without_text_commands(text)).strip(" .").casefold()
    if (match := _NUMBERS.fullmatch(plain)) is not None:
        year, month, day = match.group(1, 3, 4) if match[1] else match.group(5, 6, 7)
        return Day(int(month), int(day), int(year) if year else None)
    if (match := _CHINESE.fullmatch(plain)) is not None:
        written = [number_in_words(part) or part for part in match.group(2, 3)]
        return Day(int(written[0]), int(written[1]), int(match[1].translate(_DIGITS)) if match[1] else None)
    if (match := _MONTH_FIRST.fullmatch(plain)) is not None:
        name, day, year = match.groups()
    elif (match := _DAY_FIRST.fullmatch(plain)) is not None:
        day, name, year = match.groups()
    else:
        return None
    # Three letters tell all months apart, so that one month begins with the name.
    month_number = next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name))
    return Day(month_number, int(day), int(year) if year else None)


def same_days(reference: str, answer: str) -> Comparison | None:
    """Compare two dates; None if a side is no date. If only one side names a year and the days agree: undecided."""
    left, right = day_of(reference), day_of(answer)
    if left is None or right is None:
        # 2024/5/1 may be a day or a division.
        if (left is None) != (right is None) and _NUMBERS.fullmatch((reference if right is None else answer).strip()):
            return Comparison(None, "date")
        return None
    if left[:2] != right[:2]:
        return Comparison(False, "date")
    if left.year is not None and right.year is not None:
        return Comparison(left.year == right.year, "date")
    both_without_year = left.year is None and right.year is None
    return Comparison(True if both_without_year else None, "date")
