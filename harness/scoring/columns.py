"""A score as columns: the names of its numbers wherever they stand flat, in tables of files and in trackers."""

from __future__ import annotations

import re

import msgspec

from harness.scoring.intervals import Interval
from harness.scoring.score import Score
from harness.scoring.uncertainty import Intervals

PLAIN = [
    field.name
    for field in msgspec.structs.fields(Score)
    if field.type in (int, float, bool, int | None, float | None) and field.name != "schema"
]
"""Fields of a score that are a single number."""


def numbers(score: Score) -> dict[str, object]:
    """Column → number."""
    found: dict[str, object] = {name: getattr(score, name) for name in PLAIN}
    found |= {"bound_low": score.bounds.low, "bound_high": score.bounds.high}
    found |= _ends("sampling", score.sampling_interval) | _ends("question", score.question_interval)
    for kind, values, intervals in (
        ("pass@", score.pass_at, score.pass_at_intervals),
        ("pass^", score.pass_hat, score.pass_hat_intervals),
        ("maj@", score.maj_at, score.maj_at_intervals),
    ):
        for k, value in values.items():
            found[f"{kind}{k}"] = value
            found |= _both(f"{kind}{k}", intervals.get(k))
    found |= _both("accuracy_finished", score.accuracy_finished_intervals)
    found |= _both("accuracy_from_reasoning", score.accuracy_from_reasoning_intervals)
    found |= _both("accuracy_overridden", score.accuracy_overridden_intervals)
    for one in score.budgets:
        name = f"accuracy_within_{one.budget}"
        found[name] = one.accuracy
        found |= _ends(f"{name}_sampling", one.sampling_interval)
        found |= _ends(f"{name}_question", one.question_interval)
        found[f"{name}_longer"] = one.cut
        found[f"{name}_cut_text"] = one.accuracy_of_cut_text
        found |= _both(f"{name}_cut_text", one.accuracy_of_cut_text_intervals)
        found[f"{name}_first_right"] = one.accuracy_of_first_right
        found |= _both(f"{name}_first_right", one.accuracy_of_first_right_intervals)
    if score.first_right is not None:
        numbers_of = _fields(score.first_right)
        found |= {f"first_right_tokens_{name}": value for name, value in _fields(score.first_right.tokens).items()}
        found |= {f"first_right_{name}": value for name, value in numbers_of.items() if name != "tokens"}
    if score.tokens is not None:
        for which, counts in msgspec.structs.asdict(score.tokens).items():
            found |= {f"tokens_{which}_{name}": value for name, value in _fields(counts).items()}
    return found | {f"speed_{name}": value for name, value in _fields(score.speed).items()}


def _fields(record: msgspec.Struct | None) -> dict[str, object]:
    return {} if record is None else msgspec.structs.asdict(record)


def _both(name: str, found: Intervals | None) -> dict[str, object]:
    """The columns of both intervals; none where they are unknown."""
    if found is None:
        return {}
    return _ends(f"{name}_sampling", found.sampling_interval) | _ends(f"{name}_question", found.question_interval)


def _ends(name: str, interval: Interval | None) -> dict[str, object]:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def column_order(name: str) -> tuple[int, int, str]:
    """The fields in their own order, then the families, each by its number."""
    if name in PLAIN:
        return 0, PLAIN.index(name), name
    families = (
        "bound",
        "sampling",
        "question",
        "pass@",
        "pass^",
        "maj@",
        "accuracy_finished_",
        "accuracy_from_reasoning_",
        "accuracy_overridden_",
        "accuracy_within_",
        "first_right_",
        "tokens_",
        "speed_",
    )
    number = re.search(r"\d+", name)
    place = next(place for place, family in enumerate(families, 1) if name.startswith(family))
    return place, int(number[0]) if number else 0, name
