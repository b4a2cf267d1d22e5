"""A score as flat columns, name → number, for CSV files and experiment trackers."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from harness.scoring.score import Score
from harness.scoring.stats import Interval
from harness.scoring.uncertainty import Intervals

PLAIN = [
    field.name
    for field in msgspec.structs.fields(Score)
    if field.type in (int, float, bool, int | None, float | None) and field.name != "schema"
]
"""Fields of a score that are a single number."""


def numbers(score: Score) -> dict[str, object]:
    """Every number of the score by its column's name; None where the score has none."""
    row: dict[str, object] = {name: getattr(score, name) for name in PLAIN}
    row |= {"bound_low": score.bounds.low, "bound_high": score.bounds.high}
    row |= ends("sampling", score.sampling_interval) | ends("question", score.question_interval)
    for kind, values, intervals in (
        ("pass@", score.pass_at, score.pass_at_intervals),
        ("pass^", score.pass_hat, score.pass_hat_intervals),
        ("maj@", score.maj_at, score.maj_at_intervals),
    ):
        for k, value in values.items():
            row[f"{kind}{k}"] = value
            row |= _both(f"{kind}{k}", intervals.get(k))
    if score.g_pass is not None:
        for k, value in score.g_pass.values.items():
            name = f"G-Pass@{k}, {score.g_pass.tau:g}"
            row[name] = value
            row |= _both(name, score.g_pass.intervals.get(k))
    row |= _both("accuracy_finished", score.accuracy_finished_intervals)
    row |= _both("accuracy_from_reasoning", score.accuracy_from_reasoning_intervals)
    row |= _both("accuracy_overridden", score.accuracy_overridden_intervals)
    for budget in score.budgets:
        name = f"accuracy_within_{budget.budget}"
        row[name] = budget.accuracy
        row |= ends(f"{name}_sampling", budget.sampling_interval)
        row |= ends(f"{name}_question", budget.question_interval)
        row[f"{name}_longer"] = budget.cut
    for name, record in (
        ("audited", score.audited),
        ("tokens", score.tokens),
        ("speed", score.speed),
    ):
        row |= {} if record is None else _flat(name, record)
    return row


def _flat(name: str, value: object) -> dict[str, object]:
    """The columns of a value: one for a number, two for each interval, those of all its fields for a record."""
    if isinstance(value, Intervals):
        return _both(name.removesuffix("_intervals"), value)
    if isinstance(value, Interval):
        return ends(name.removesuffix("_interval"), value)
    if not isinstance(value, msgspec.Struct):
        return {name: value}
    columns: dict[str, object] = {}
    for field in msgspec.structs.fields(value):
        member = getattr(value, field.name)
        # A record that is missing has no columns; a number that is missing has an empty one.
        if member is not None or field.type in (int | None, float | None):
            columns |= _flat(f"{name}_{field.name}", member)
    return columns


def _both(name: str, intervals: Intervals | None) -> dict[str, object]:
    """The columns of both intervals; empty where the intervals are unknown."""
    if intervals is None:
        return {}
    sampling = ends(f"{name}_sampling", intervals.sampling_interval)
    return sampling | ends(f"{name}_question", intervals.question_interval)


def ends(name: str, interval: Interval | None) -> dict[str, Any]:
    """The columns `NAME_low` and `NAME_high`; None without an interval."""
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def column_order(name: str) -> tuple[int, int, str]:
    """Sort key of a column: single numbers in the order of `Score`, then pass@k and other families by k or budget."""
    if name in PLAIN:
        return 0, PLAIN.index(name), name
    families = (
        "bound",
        "sampling",
        "question",
        "pass@",
        "pass^",
        "maj@",
        "G-Pass@",
        "accuracy_finished_",
        "accuracy_from_reasoning_",
        "accuracy_overridden_",
        "audited_",
        "accuracy_within_",
        "tokens_",
        "speed_",
    )
    number = re.search(r"\d+", name)
    rank = next(rank for rank, family in enumerate(families, 1) if name.startswith(family))
    return rank, int(number[0]) if number else 0, name
