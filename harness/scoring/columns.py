"""A score as flat columns, name → number, for CSV files and experiment trackers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from harness.scoring.score import Score
from harness.scoring.stats import Estimate, Interval

_SIGNS = {"pass_at": "pass@", "pass_hat": "pass^", "maj_at": "maj@", "budgets": "within_", "at": "at_"}
"""Fields whose columns begin with another name."""

_NO_COLUMNS = ("schema", "breakdowns", "settings")
"""Fields without columns: a group of a breakdown has a row of its own, and a judge's settings are no result."""

_NUMBERS = (int, float, bool, int | None, float | None, Estimate | None)
"""Types of fields that have a column even where a score has no such number."""


def numbers(score: msgspec.Struct) -> dict[str, object]:
    """Every number of a score, or of a record in it, by its column's name in the order of the fields; None: unknown.

    An estimate has the columns `NAME`, `NAME_sampling_low`, `NAME_sampling_high`, `NAME_question_low` and
    `NAME_question_high`; and `NAME_at_most`, true, where the first two are an upper bound.
    """
    return {name: number for of_field in _by_field(score) for name, number in of_field.items()}


def column_names(scores: Iterable[Score]) -> list[str]:
    """The columns of several scores: the fields in their order, each with all columns that a score has of it."""
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
    """Yield (column, number) for each number in `value`, whose columns begin with `name`; text has no column.

    A key of a mapping follows a name of `_SIGNS` without a line below: `pass@4`, but `anomalies_by_sign_repetition`.
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
