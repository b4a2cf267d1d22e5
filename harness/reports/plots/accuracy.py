"""Plots of scores: accuracy with its intervals, against the budget of tokens, and against samples per question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.core.nouns import count_noun
from harness.reports.plots.plot import (
    BANDS,
    BUDGET_AXIS,
    DOUBLING,
    ENDS,
    SERIES,
    SHARE,
    SHARE_AXIS,
    SOFT,
    Cell,
    Plot,
    axis,
    label,
    layer,
)
from harness.reports.plots.plot import series as series_of
from harness.scoring.score import Score
from harness.scoring.stats import Estimate
from harness.scoring.uncertainty import value_cell


class Labelled(NamedTuple):
    """A score and its name in the plot."""

    label: str
    score: Score


def accuracy_plot(scores: Sequence[Labelled]) -> Plot | None:
    """One row a score: dot = accuracy, thick line = sampling interval, thin line = question interval."""
    present = [(name, score) for name, score in scores if score.accuracy is not None]
    rows: list[tuple[Cell, ...]] = [
        (name, value_cell(score.accuracy, " %"), row, *numbers_of(score.accuracy))
        for row, (name, score) in enumerate(present)
    ]
    if not rows:
        return None
    across = {"scale": SHARE, **SHARE_AXIS, "grid": True}
    n_lines = max(label(name).count("\n") + 1 for name, _ in present)
    # The name and the value stand above the marks of their row.
    text = {"baseline": "bottom", "dy": 7 - 15 * n_lines}
    name_text, value_text = text | {"align": "left", "lineBreak": "\n", "color": SOFT}, text | {"align": "right"}
    thin, thick, dot = {"strokeWidth": 1.5}, {"strokeWidth": 6, "opacity": 0.45}, {"size": 56}
    blue = {"color": SERIES[0]}
    layers = [
        layer("rule", thin | blue, x=axis("question_low", None, **across), x2={"field": "question_high"}),
        layer("rule", thick | blue, x=axis("sampling_low", None, scale=SHARE), x2={"field": "sampling_high"}),
        layer("point", dot | blue, x=axis("accuracy", None, scale=SHARE)),
        layer("text", name_text, x={"value": 0}, text={"field": "series"}),
        layer("text", value_text, x={"value": "width"}, text={"field": "value"}),
    ]
    ends = [f"{kind}_{end}" for kind in ("sampling", "question") for end in ("low", "high")]
    return Plot(
        name="accuracy",
        title="Accuracy",
        summary="Thick line: 95 % interval, same questions, asked again. Thin line: other questions of this kind.",
        columns=("series", "value", "row", "accuracy", *ends),
        rows=tuple(rows),
        drawing={
            "height": {"step": 30 + 15 * n_lines},
            "encoding": {"y": {"field": "row", "type": "ordinal", "axis": None}},
            "layer": layers,
        },
    )


def budget_plot(scores: Sequence[Labelled]) -> Plot | None:
    """Accuracy against the token budget, one line per score; None if no score has budgets."""
    rows: list[tuple[Cell, ...]] = [
        (name, tokens, *numbers_of(budget.accuracy), budget.cut)
        for name, score in scores
        for tokens, budget in score.budgets.items()
    ]
    if len({row[1] for row in rows}) < 2:
        return None
    across = axis("budget", "completion tokens allowed", scale=DOUBLING, **BUDGET_AXIS)
    return Plot(
        name="budgets",
        title="Accuracy against token budget",
        summary=f"A reply longer than the budget counts as wrong. {BANDS}",
        columns=("series", "budget", "accuracy", *ENDS, "cut"),
        rows=tuple(rows),
        drawing=curves(rows, across, "accuracy"),
    )


def curve_plot(score: Score) -> Plot | None:
    """The plot of pass@k, pass^k and maj@k against k, with sampling intervals; None if the score has only one k."""
    kinds = {
        "pass@k: any of k right": score.pass_at,
        "maj@k: the majority right": score.maj_at,
        "pass^k: all k right": score.pass_hat,
    }
    rows: list[tuple[Cell, ...]] = [
        (name, k, *numbers_of(estimate)[:3]) for name, by_k in kinds.items() for k, estimate in sorted(by_k.items())
    ]
    ks = sorted(score.pass_at)
    if len(ks) < 2:
        return None
    most = ks[-1]
    any_right = f"{score.pass_at[most].value:.0%}"
    majority = f", the majority right {score.maj_at[most].value:.0%}" if most in score.maj_at else ""
    return Plot(
        name="curves",
        title="More samples",
        summary=f"With {count_noun(most, 'sample')} a question: any right {any_right}{majority}. {BANDS}",
        columns=("series", "k", "value", "low", "high"),
        rows=tuple(rows),
        drawing=curves(rows, axis("k", "samples a question, k", scale=DOUBLING, values=ks, format="d"), "value"),
    )


def curves(
    rows: Sequence[Sequence[Cell]], x: Mapping[str, Any], value: str, *, lone_points: bool = False
) -> dict[str, Any]:
    """The Vega-Lite drawing of lines with dots over bands, one colour and shape per label, the first cell of a row.

    x: the encoding of the horizontal position. value: the column of the lines; the bands reach from `low` to `high`.
    lone_points: a dot may have no neighbour, and so no area between the two; the band's outline then is its interval.
    """
    labels = list(dict.fromkeys(str(row[0]) for row in rows))
    colour, shape = series_of(labels), series_of(labels, shapes=True)
    outline = {"stroke": colour, "strokeWidth": {"value": 1.8}} if lone_points else {}
    up, band = axis(value, None, scale=SHARE), axis("low", None, scale=SHARE, **SHARE_AXIS)
    return {
        "encoding": {"x": x},
        "layer": [
            layer("area", {"opacity": 0.16}, y=band, y2={"field": "high"}, color=colour, **outline),
            layer("line", y=up, color=colour),
            layer("point", {"size": 40}, y=up, color=colour, shape=shape),
        ],
    }


def numbers_of(estimate: Estimate | None) -> tuple[float | None, ...]:
    """The value and the four ends of both intervals; None for each that is not known."""
    if estimate is None:
        return (None,) * 5
    return estimate.value, *(estimate.sampling or (None, None)), *(estimate.question or (None, None))
