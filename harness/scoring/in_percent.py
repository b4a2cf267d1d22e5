"""Accuracies and intervals in percent, as tables, reports and the viewer print them."""

from __future__ import annotations

from harness.scoring.intervals import Interval
from harness.scoring.score import Score
from harness.scoring.uncertainty import Intervals

MAX_DIGITS = 4
"""Largest number of decimals of an interval's end."""

EXACT_DIGITS = 6
"""Decimals before a number is rounded for show, so that -3.75 is one number, however it was computed."""

ABSENT = "–"
"""The cell of an unknown value."""


def percent(value: float | None, unit: str = "") -> str:
    """A fraction in percent with one decimal, and the unit behind it."""
    return ABSENT if value is None else f"{round(100 * value, EXACT_DIGITS):.1f}{unit}"


def interval_cell(interval: Interval | None, *, at_most: bool = False) -> str:
    """An interval in percent, such as `55.4–58.8`. at_most: it is only an upper bound, and the cell says so.

    Ends that would look equal with one decimal get more decimals, so that no interval looks like a point.
    """
    if interval is None:
        return ABSENT
    digits = 1
    while digits < MAX_DIGITS and f"{100 * interval.low:.{digits}f}" == f"{100 * interval.high:.{digits}f}":
        digits += 1
    return f"{'at most ' if at_most else ''}{100 * interval.low:.{digits}f}–{100 * interval.high:.{digits}f}"


def accuracy_cell(score: Score, unit: str = "") -> str:
    """The accuracy in percent with its sampling interval: `57.1 (55.9–58.3)`; with the unit, `57.1 % (55.9–58.3)`.

    `57.1 (at most 39.2–73.3)` with one sample a question; `57.1 (bounds 50.0–61.2)` where missing samples can move the
    accuracy out of the interval.
    """
    value = percent(score.accuracy, unit)
    interval, bounds = score.sampling_interval, Interval(score.bounds.low, score.bounds.high)
    beyond = interval is None or bounds.low < interval.low or bounds.high > interval.high
    if score.accuracy is None or (score.partial and beyond):
        return f"{value} (bounds {interval_cell(bounds)})"
    if interval is None:  # An earlier version scored this run and stored no intervals.
        return value
    return f"{value} ({interval_cell(interval, at_most=score.sampling_error is None)})"


def with_interval(accuracy: float | None, intervals: Intervals | None, unit: str = "") -> str:
    """The accuracy in percent, with its sampling interval if the score has one; earlier versions stored none."""
    if accuracy is None or intervals is None:
        return percent(accuracy, unit)
    return f"{percent(accuracy, unit)} ({interval_cell(intervals.sampling_interval, at_most=intervals.at_most)})"
