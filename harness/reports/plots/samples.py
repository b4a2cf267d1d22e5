"""Plots of a benchmark's samples: their lengths, and their outcomes by length."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from harness.core.records import Grade
from harness.reports.outcomes import WORDS, Outcome, outcome
from harness.reports.plots.plot import COUNT_AXIS, INK, SHARE_AXIS, TOKENS_AXIS, Cell, Plot, axis

COLOURS: dict[Outcome, str] = {
    "correct": "#0072b2",
    "wrong": "#d55e00",
    "cut": "#e8a33d",
    "no_answer": "#8a939d",
    "undecided": "#c77cae",
}

MAX_BINS = 24
"""Largest number of bars in the histogram of lengths."""

LENGTH_GROUPS = 10
"""Largest number of groups in the plot by length; the groups have about equally many samples."""

MIN_GROUP = 8
"""Smallest number of samples in a group by length."""

_SCALE = {"domain": list(WORDS.values()), "range": list(COLOURS.values())}


class _Sized(NamedTuple):
    """A sample's number of completion tokens and its outcome."""

    tokens: int
    kind: Outcome


def sample_plots(grades: Iterable[Grade]) -> list[Plot]:
    """The plots of lengths, their quantiles, and outcomes by length; empty if no server stated token counts."""
    distinct: dict[_Sized, _Sized] = {}  # Equal samples share one object, because there may be millions.
    every = (_Sized(g.completion_tokens, outcome(g)) for g in grades if g.completion_tokens is not None)
    sized = sorted(distinct.setdefault(sample, sample) for sample in every)
    if not sized or not sized[-1].tokens:
        return []
    return [_lengths(sized), _quantiles(sized), *_by_length(sized)]


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


def _quantiles(sized: Sequence[_Sized]) -> Plot:
    """The plot of the quantiles of length for each outcome."""
    rows: list[tuple[Cell, ...]] = []
    for kind, word in WORDS.items():
        tokens = [sample.tokens for sample in sized if sample.kind == kind]
        if tokens:
            rows.append((word, len(tokens), *(_quantile(tokens, q) for q in (0.05, 0.25, 0.5, 0.75, 0.95))))
    lane = {"field": "outcome", "type": "nominal", "sort": None, "axis": {"title": None, "ticks": False}}
    colour = {"field": "outcome", "type": "nominal", "scale": _SCALE, "legend": None}
    drawing: dict[str, Any] = {
        "height": {"step": 34},
        # The reader's font may be wider than the one that the library measures.
        "padding": {"left": 12, "right": 2, "top": 2, "bottom": 2},
        "encoding": {"y": lane, "color": colour},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"x": axis("p5", "completion tokens", **TOKENS_AXIS), "x2": {"field": "p95"}},
            },
            {"mark": {"type": "bar", "size": 14}, "encoding": {"x": axis("p25", None), "x2": {"field": "p75"}}},
            {
                "mark": {"type": "tick", "thickness": 2, "size": 20},
                "encoding": {"x": axis("p50", None), "color": {"value": INK}},
            },
        ],
    }
    medians = ", ".join(f"{row[0]} {row[4]:,}" for row in rows)
    return Plot(
        name="length-quantiles",
        title="Lengths of right and wrong",
        summary=f"Median completion tokens: {medians}. Box: the middle half of the samples; line: from 5 to 95 %.",
        columns=("outcome", "samples", "p5", "p25", "p50", "p75", "p95"),
        rows=tuple(rows),
        drawing=drawing,
    )


def _by_length(sized: Sequence[_Sized]) -> list[Plot]:
    """The plot of outcomes for groups of samples from the shortest to the longest; none with too few samples."""
    groups = min(LENGTH_GROUPS, len(sized) // MIN_GROUP)
    if groups < 2:
        return []
    edges = [number * len(sized) // groups for number in range(groups + 1)]
    rows: list[tuple[Cell, ...]] = []
    shares = []
    for number, (first, last) in enumerate(itertools.pairwise(edges)):
        group = sized[first:last]
        counts = Counter(sample.kind for sample in group)
        shares.append(counts["correct"] / len(group))
        for order, (kind, word) in enumerate(WORDS.items()):
            if counts[kind]:
                rows.append((number, group[0].tokens, group[-1].tokens, word, order, counts[kind] / len(group)))
    medians = [sized[(a + b) // 2].tokens for a, b in itertools.pairwise(edges)]
    names = [_short(tokens) for tokens in medians]
    drawing = {
        "mark": {"type": "bar"},
        "encoding": {
            "x": {
                "field": "group",
                "type": "ordinal",
                "axis": {
                    "title": "median completion tokens of each tenth" if groups == 10 else "median completion tokens",
                    "labelExpr": f"{json.dumps(names)}[datum.value]",
                    "labelAngle": 0,
                    "ticks": False,
                },
            },
            "y": axis("share", "share of the samples", scale={"domain": [0, 1]}, **SHARE_AXIS),
            "color": _colour(sized),
            "order": {"field": "order"},
        },
    }
    return [
        Plot(
            name="outcomes-by-length",
            title="Outcomes by length",
            summary=f"Of the shortest samples {shares[0]:.0%} are right, of the longest {shares[-1]:.0%}. "
            f"Each bar holds as many samples.",
            columns=("group", "from", "to", "outcome", "order", "share"),
            rows=tuple(rows),
            drawing=drawing,
        )
    ]


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


def _quantile(ordered: Sequence[int], q: float) -> int:
    """The quantile q (0.5: the median) of rising numbers."""
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def _short(tokens: int) -> str:
    """A number in at most four characters: `850`, `1.2k`, `31k`."""
    if tokens < 1000:
        return str(tokens)
    thousands = tokens / 1000
    return f"{thousands:.1f}k" if thousands < 9.95 else f"{thousands:.0f}k"
