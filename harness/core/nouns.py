"""Numbers with their nouns, and times, for messages."""

from __future__ import annotations

import math

_EXACT_DIGITS = 6
"""Decimals before a number is rounded for show, so that -3.75 is one number, however it was computed."""


def count_noun(n: float, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 token`, `2,000 tokens`. plural: where it is not the noun with an s."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def are(n: int) -> str:
    """The verb after a number: `is` after 1, else `are`."""
    return "is" if n == 1 else "are"


def count_points(number: str) -> str:
    """A number of points, already in digits, with its noun: `1 point`, `2.5 points`."""
    return f"{number} point{'' if number == '1' else 's'}"


def in_percent(fraction: float) -> str:
    """A fraction in percent with one decimal, so that one number has the same digits in each table and sentence."""
    return f"{round(100 * fraction, _EXACT_DIGITS):.1f}"


def in_points(difference: float) -> str:
    """A difference of two fractions in points with one decimal and its sign: `+1.5`, `-3.8`, `+0.0`."""
    return f"{round(100 * difference, _EXACT_DIGITS):+z.1f}"


MAX_SHOWN_SECONDS = 1000 * 365 * 24 * 3600
"""Longest duration that is shown as a number. A damaged record may give any other, infinity among them."""


def duration(seconds: float) -> str:
    """A time in words: `42 s`, `12 min`, `3 h 05 min`, `2 d 4 h`; also NaN, and more than a thousand years."""
    if not seconds <= MAX_SHOWN_SECONDS:  # true for NaN as well
        return "an unknown time" if math.isnan(seconds) else "more than 1,000 years"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{seconds:.0f} s" if seconds < 100 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
