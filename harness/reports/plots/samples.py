"""The plot of the lengths of a benchmark's samples."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from harness.core.records import Grade
from harness.reports.plots.plot import COUNT_AXIS, TOKENS_AXIS, Cell, Plot, axis

Outcome = Literal["correct", "wrong", "cut", "no_answer", "undecided"]
"""A sample's verdict; `cut` if its reply is not right and was ended by `max_tokens`."""

WORDS: dict[Outcome, str] = {
    "correct": "correct",
    "wrong": "wrong",
    "cut": "cut by max_tokens",
    "no_answer": "no answer",
    "undecided": "undecided",
}
"""The words for every outcome, in the order of bars and legends."""

COLOURS: dict[Outcome, str] = {
    "correct": "#0072b2",
    "wrong": "#d55e00",
    "cut": "#e8a33d",
    "no_answer": "#8a939d",
    "undecided": "#c77cae",
}

MAX_BINS = 24
"""Largest number of bars in the histogram of lengths."""


class _Sized(NamedTuple):
    """A sample's number of completion tokens and its outcome."""

    tokens: int
    kind: Outcome


def length_plot(grades: Iterable[Grade]) -> Plot | None:
    """The plot of the lengths of samples by outcome; None if no server stated token counts."""
    distinct: dict[_Sized, _Sized] = {}  # Equal samples share one object, because there may be millions.
    every = (_Sized(g.completion_tokens, _outcome(g)) for g in grades if g.completion_tokens is not None)
    sized = sorted(distinct.setdefault(sample, sample) for sample in every)
    return _lengths(sized) if sized and sized[-1].tokens else None


def _outcome(grade: Grade) -> Outcome:
    """The outcome of one sample; a right answer is correct, cut or not."""
    return "cut" if grade.truncated and grade.verdict != "correct" else grade.verdict


def _lengths(sized: Sequence[_Sized]) -> Plot:
    """The plot of the numbers of samples by length and outcome."""
    step = _step(sized[-1].tokens)
    counts = Counter((min(sample.tokens // step, MAX_BINS - 1), sample.kind) for sample in sized)
    rows: list[tuple[Cell, ...]] = [
        (number * step, (number + 1) * step, WORDS[kind], order, counts[number, kind])
        for number in range(sized[-1].tokens // step + 1)
        for order, kind in enumerate(WORDS)
        if counts[number, kind]
    ]
    last = (sized[-1].tokens // step + 1) * step
    drawing = {
        "mark": {"type": "bar", "binSpacing": 1},
        "encoding": {
            "x": {
                **axis("from", "completion tokens", scale={"domain": [0, last], "nice": False}, **TOKENS_AXIS),
                "bin": "binned",
            },
            "x2": {"field": "to"},
            "y": axis("samples", "samples", **COUNT_AXIS),
            "color": _colour(sized),
            "order": {"field": "order"},
        },
    }
    n_cut = sum(sample.kind == "cut" for sample in sized)
    cut = f" {n_cut:,} of {len(sized):,} were cut by max_tokens and are not right." if n_cut else ""
    return Plot(
        name="lengths",
        title="Lengths",
        summary=f"Samples by completion tokens; the longest has {sized[-1].tokens:,}.{cut}",
        columns=("from", "to", "outcome", "order", "samples"),
        rows=tuple(rows),
        drawing=drawing,
    )


def _colour(sized: Sequence[_Sized]) -> dict[str, Any]:
    """The colour by outcome; the legend has only the outcomes that occur, each with its fixed colour."""
    present = {sample.kind for sample in sized}
    kinds = [kind for kind in WORDS if kind in present]
    scale = {"domain": [WORDS[kind] for kind in kinds], "range": [COLOURS[kind] for kind in kinds]}
    return {"field": "outcome", "type": "nominal", "scale": scale, "sort": None, "legend": {"columns": 3}}


def _step(longest: int) -> int:
    """Width of a bar in tokens: the smallest of 1, 2 or 5 times a power of ten with at most `MAX_BINS` bars."""
    for exponent in itertools.count():
        for factor in (1, 2, 5):
            step: int = factor * 10**exponent
            if longest // step < MAX_BINS:
                return step
    raise AssertionError
