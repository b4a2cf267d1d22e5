"""Equality of dates in digits and of times of day, which are no differences, quotients or ratios."""

from __future__ import annotations

import re

from harness.answers.words import without_text_commands
from harness.grading.compare.scalars import Comparison

_TIME = re.compile(
    r"\s*(?P<hour>(?P<small>0?\d|1[0-2])|1\d|2[0-3])[:：](?P<minutes>[0-5]\d)\s*"
    r"(?(small)(?:(?P<half>[aApP])\.?[mM]\.?)?)\s*"
)
_DATE = re.compile(r"\s*(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4})\s*")


def same_dates(reference: str, answer: str) -> Comparison | None:
    """Compare dates in digits, 2024-05-01, which are no differences or quotients; None if neither side is one."""
    dates = [_DATE.fullmatch(text) for text in (reference, answer)]
    if dates == [None, None]:
        return None
    numbers = [[int(number) for number in re.findall(r"\d+", date[0])] for date in dates if date is not None]
    return Comparison(None if len(numbers) == 1 else numbers[0] == numbers[1], "date")


def same_times(reference: str, answer: str) -> Comparison | None:
    """Compare times of day of which at least one names its half: 3:30 p.m. and 15:30; None for all other answers.

    The answer may leave the half out, but not of the hour 12. One that names the other half of the same hours is
    undecided: 8:55 p.m. beside 8:55, which may count to 24.
    """
    times = [_TIME.fullmatch(without_text_commands(text).replace("~", " ")) for text in (reference, answer)]
    left, right = times
    if left is None or right is None or not (left["half"] or right["half"]):
        return None
    hours = [
        int(time["hour"]) % (12 if time["half"] else 24) + 12 * (time["half"] in ("p", "P")) for time in (left, right)
    ]
    if left["minutes"] != right["minutes"]:
        return Comparison(False, "clock")
    as_written = int(left["hour"]) == int(right["hour"])
    if as_written and int(left["hour"]) == 12 and not (left["half"] in ("p", "P") or (left["half"] and right["half"])):
        return Comparison(None, "clock")  # 12:30 is half past noon, or half an hour past midnight
    if hours[0] == hours[1] or (left["half"] and right["half"]):
        return Comparison(hours[0] == hours[1], "clock")
    return Comparison((True if left["half"] else None) if as_written else False, "clock")
