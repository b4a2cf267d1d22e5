"""Formats a score for tables: its accuracies and intervals as cells in percent, for tables, reports and the viewer, and
all its numbers as flat columns, name → number, for CSV files and experiment trackers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from harness.core.number_text import in_percent, in_points
from harness.scoring.call_measures import SCHEMA_ACCURACY
from harness.scoring.score import Score
from harness.scoring.stats import Estimate, Interval

ABSENT = "–"
"""The cell of an unknown value."""

_SIGNS = {"pass_at": "pass@", "pass_hat": "pass^", "maj_at": "maj@", "budgets": "within_", "at": "at_"}
"""Fields whose columns begin with a different name."""

_NO_COLUMNS = ("schema", "breakdowns", "settings")
"""Fields without columns: a breakdown's groups have separate rows, and a judge's settings are not results."""

_NUMBERS = (int, float, bool, int | None, float | None, Estimate | None)
"""Types of fields that have a column even if a score has no value."""


def numbers(score: msgspec.Struct) -> dict[str, object]:
    """Every number of a score, or of a record in it, by column name, in the order of the fields; None: unknown.

    An estimate has the columns `NAME`, `NAME_sampling_low`, `NAME_sampling_high`, `NAME_question_low` and
    `NAME_question_high`, and also `NAME_at_most` (true) if the sampling interval is an upper bound.
    """
    return {name: number for of_field in _by_field(score) for name, number in of_field.items()}


def column_names(scores: Iterable[Score]) -> list[str]:
    """The columns of several scores: the fields in order, each with all its columns that occur in any score."""
    of_fields = zip(*map(_by_field, scores), strict=True)
    return list(dict.fromkeys(name for of_field in of_fields for columns in of_field for name in columns))


def _by_field(record: msgspec.Struct) -> list[dict[str, object]]:
    """The columns of each field of a record."""
    columns = []
    for field in msgspec.structs.fields(type(record)):
        value = getattr(record, field.name)
        has_columns = field.name not in _NO_COLUMNS and (value is not None or field.type in _NUMBERS)
        columns.append(dict(_walk(_SIGNS.get(field.name, field.name), value)) if has_columns else {})
    return columns


def _walk(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield (column, number) for each number in `value`; column names begin with `name`. Text has no column.

    A mapping's key is appended to a name from `_SIGNS` without an underscore: `pass@4`, but
    `anomalies_by_sign_repetition`.
    """
    if isinstance(value, Estimate):
        yield name, value.value
        yield from {**ends(f"{name}_sampling", value.sampling), **ends(f"{name}_question", value.question)}.items()
        if value.at_most:
            yield f"{name}_at_most", True
    elif isinstance(value, msgspec.Struct):
        for column, number in numbers(value).items():
            yield f"{name}_{column}", number
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(f"{name}{key}" if name[-1] in "@^_" else f"{name}_{key}", item)
    elif isinstance(value, bool | int | float | None):
        yield name, value


def ends(name: str, interval: Interval | None) -> dict[str, Any]:
    """The columns `NAME_low` and `NAME_high`; None without an interval."""
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


# ---- cells in percent


def percent(value: float | None, unit: str = "") -> str:
    """A fraction in percent with one decimal place, followed by the unit."""
    return ABSENT if value is None else f"{in_percent(value)}{unit}"


def point_cells(difference: Estimate) -> tuple[str, str, str]:
    """A difference in points, its interval for the same questions, and its interval for new questions.

    For example: `+2.0`, `at most -73.0 to +20.5`, `-1.0 to +5.0`.
    """

    def cell(interval: Interval | None) -> str:
        return ABSENT if interval is None else f"{in_points(interval.low)} to {in_points(interval.high)}"

    same, new = cell(difference.sampling), cell(difference.question)
    return in_points(difference.value), f"at most {same}" if difference.at_most else same, new


def value_cell(estimate: Estimate | None, unit: str = "") -> str:
    """The value in percent with one decimal place, followed by the unit; a number of tokens is a whole number."""
    if estimate is not None and estimate.unit:
        return f"{estimate.value:.0f}"
    return percent(estimate and estimate.value, unit)


def sampling_cell(estimate: Estimate | None) -> str:
    """The interval for the same questions, such as `55.4–58.8`, or `at most 39.2–73.3`."""
    if estimate is None or estimate.sampling is None:
        return ABSENT
    interval, at_most = estimate.sampling, "at most " if estimate.at_most else ""
    return at_most + (f"{interval.low:.0f}–{interval.high:.0f}" if estimate.unit else interval.in_percent)


def cells(estimate: Estimate | None) -> tuple[str, str, str]:
    """The value, its interval for the same questions, and its interval for other questions, as the cells of a row."""
    question = estimate and msgspec.structs.replace(estimate, sampling=estimate.question, at_most=False)
    return value_cell(estimate), sampling_cell(estimate), sampling_cell(question)


def with_interval(estimate: Estimate | None, unit: str = "") -> str:
    """The value with its interval for the same questions: `57.1 (55.9–58.3)`."""
    if estimate is None or estimate.sampling is None:
        return value_cell(estimate, unit)
    return f"{value_cell(estimate, unit)} ({sampling_cell(estimate)})"


def why_narrower(estimate: Estimate | None, *, imported: bool = False) -> tuple[str, ...]:
    """One sentence on why the interval for other questions is narrower than the interval for the same questions;
    otherwise empty.

    imported: the samples were read from a file, so the sentence does not suggest taking more.
    """
    if estimate is None or estimate.sampling is None or estimate.question is None:
        return ()
    if estimate.question.half_width >= estimate.sampling.half_width:
        return ()
    reason = (
        "with one sample per question, or with duplicate samples, it is only an upper bound"
        if estimate.at_most
        else "with few samples per question, it is unclear how much the answers vary"
    )
    more = "" if imported else ". To narrow it, take more samples per question"
    return (
        f"the same-questions interval is wider than the new-questions interval, although the latter also depends on "
        f"the variation between questions: {reason}{more}",
    )


def lead_estimate(score: Score) -> Estimate | None:
    """The accuracy, or the schema accuracy if no question states a right answer."""
    return score.accuracy or score.measures.get(SCHEMA_ACCURACY)


def accuracy_cell(score: Score, unit: str = "") -> str:
    """The accuracy in percent with its sampling interval: `57.1 (55.9–58.3)`; with the unit, `57.1% (55.9–58.3)`.

    `57.1 (at most 39.2–73.3)` with one sample per question; `57.1 (bounds 50.0–61.2)` if missing samples can move the
    accuracy out of the interval; `all undecided` if the rules decided no sample, so the accuracy is unknown; the schema
    accuracy if no question states a right answer.
    """
    if score.accuracy is None and (fits := lead_estimate(score)):
        return f"{with_interval(fits, unit)} {SCHEMA_ACCURACY}"
    if score.undecided_share == 1:
        return "all undecided"
    bounds = Interval(score.bounds.low, score.bounds.high)
    interval = score.accuracy and score.accuracy.sampling
    beyond = interval is None or bounds.low < interval.low or bounds.high > interval.high
    unit = f"{unit} of points" if score.points_of and unit else unit
    if score.accuracy is None or (score.partial and beyond):
        return f"{value_cell(score.accuracy, unit)} (bounds {bounds.in_percent})"
    return with_interval(score.accuracy, unit)
