"""Plots of experiments on repeated runs: where their accuracies lie, and the error against the number of samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.core.nouns import in_percent
from harness.reports.plots.plot import SERIES, Cell, Plot, axis
from harness.reports.plots.plot import series as series_of
from harness.scoring.repeats import Repeats, SampleSize
from harness.scoring.stats import Z_95

CURVE_POINTS = 120
"""Number of points by which a smooth curve is drawn."""

_POINTS: Mapping[str, Any] = {"labelExpr": "format(100 * datum.value, '~g')"}
"""Axis labels that show a fraction in percentage points."""


def repeats_plot(benchmark: str, names: Sequence[str], repeats: Repeats) -> Plot:
    """The histogram of the accuracies under the normal curve that the sampling error predicts. names: of the runs.

    The range of 95 % of repeats, as predicted, is shaded.
    """
    rows: tuple[tuple[Cell, ...], ...] = tuple(zip(names, repeats.accuracies, repeats.errors, strict=True))
    runs = len(rows)
    step = _step(repeats)
    # The quotient is rounded first: one just below a whole number would begin a bar too early.
    first = math.floor(round(min(repeats.accuracies) / step, 6)) * step - step / 2
    counts: dict[int, int] = {}
    for accuracy in repeats.accuracies:
        # An accuracy on the edge of a bar must not fall one bar short by rounding.
        number = math.floor((accuracy - first) / step + 1e-9)
        counts[number] = counts.get(number, 0) + 1
    kinds = [f"{runs} repeats", "predicted by the sampling error"]
    bars = [
        {"series": kinds[0], "from": first + number * step, "to": first + (number + 1) * step, "repeats": count}
        for number, count in sorted(counts.items())
    ]
    low = max(0.0, min(repeats.mean - 3.5 * repeats.predicted, bars[0]["from"]))  # type: ignore[call-overload]
    high = min(1.0, max(repeats.mean + 3.5 * repeats.predicted, bars[-1]["to"]))  # type: ignore[call-overload]
    if not repeats.predicted:  # A predicted spread of 0 leaves no width to the picture.
        low, high = max(0.0, low - 0.05), min(1.0, high + 0.05)
    curve = [
        {"series": kinds[1], "accuracy": x, "repeats": runs * step * _normal(x, repeats.mean, repeats.predicted)}
        for x in (low + (high - low) * number / CURVE_POINTS for number in range(CURVE_POINTS + 1))
    ]
    band = {"from": repeats.mean - Z_95 * repeats.predicted, "to": repeats.mean + Z_95 * repeats.predicted}
    drawing = _histogram(bars, curve, band, (low, high), series_of(kinds))
    low_limit, high_limit = (100 * end for end in repeats.limits)
    return Plot(
        name=f"{benchmark}-repeats",
        title="Accuracy of repeated runs",
        summary=f"{runs} repeats of {repeats.n} samples a question. Their accuracies "
        f"deviate by {100 * repeats.deviation:.2f} points; {100 * repeats.predicted:.2f} are predicted, and "
        f"chance explains {low_limit:.2f} to {high_limit:.2f}. Shaded: 95 % of repeats, by the prediction.",
        columns=("repeat", "accuracy", "sampling_error"),
        rows=rows,
        drawing=drawing,
        subject=f"{benchmark}, {repeats.n_questions} × {repeats.n}: {100 * repeats.deviation:.2f} points "
        f"observed, {100 * repeats.predicted:.2f} predicted",
    )


def _histogram(
    bars: Sequence[Mapping[str, object]],
    curve: Sequence[Mapping[str, object]],
    band: Mapping[str, float],
    limits: tuple[float, float],
    colour: Mapping[str, Any],
) -> dict[str, Any]:
    """Bars of the repeats under the predicted curve.

    band: the range of 95 % of repeats, as predicted. limits: the accuracies at the ends of the axis. bars, curve: rows
    of data with the fields `from`, `to` and `repeats`. colour: the Vega-Lite encoding of the colour.
    """
    low, high = limits
    across: dict[str, Any] = {
        "scale": {"domain": [low, high], "nice": False, "clamp": True},
        "format": ".1%" if high - low < 0.12 else ".0%",
    }
    return {
        "layer": [
            {
                "data": {"values": [band]},
                "mark": {"type": "rect", "color": SERIES[1], "opacity": 0.1},
                "encoding": {"x": axis("from", "accuracy", **across), "x2": {"field": "to"}},
            },
            {
                "data": {"values": bars},
                "mark": {"type": "bar", "opacity": 0.7, "binSpacing": 1},
                "encoding": {
                    "x": {**axis("from", "accuracy", **across), "bin": "binned"},
                    "x2": {"field": "to"},
                    "y": axis("repeats", "repeats", tickMinStep=1, format="d"),
                    "color": colour,
                },
            },
            {
                "data": {"values": curve},
                "mark": {"type": "line"},
                "encoding": {
                    "x": axis("accuracy", "accuracy", **across),
                    "y": axis("repeats", "repeats"),
                    "color": colour,
                },
            },
        ],
    }


def sizes_plot(benchmark: str, n_questions: int, sizes: Sequence[SampleSize]) -> Plot:
    """The sampling error against the samples of each question: predicted, stated by single runs, and observed."""
    columns = ("n", "runs", "predicted", "own", "own_low", "own_high", "deviation", "mean_question_deviation")
    rows: tuple[tuple[Cell, ...], ...] = tuple(tuple(getattr(size, column) for column in columns) for size in sizes)
    ns = [size.n for size in sizes]
    single = sizes[0].predicted * math.sqrt(sizes[0].n)  # the error of one sample a question
    first, last = math.log2(min(ns)), math.log2(max(ns))
    kinds = ["predicted, falls with √n", "stated by a run of n", "observed between repeats"]
    curve = [
        {"series": kinds[0], "n": 2**x, "error": single / math.sqrt(2**x)}
        for x in (first + (last - first) * number / CURVE_POINTS for number in range(CURVE_POINTS + 1))
    ]
    stated = [
        {"series": kinds[1], "n": size.n, "error": size.own, "low": size.own_low, "high": size.own_high}
        for size in sizes
    ]
    seen = [{"series": kinds[2], "n": size.n, "error": size.deviation} for size in sizes if size.deviation is not None]
    kinds = kinds if seen else kinds[:2]
    colour, shape = series_of(kinds), series_of(kinds, shapes=True)
    across = axis("n", "samples a question, n", scale={"type": "log", "base": 2, "nice": False}, values=ns, format="d")
    up = axis("error", "sampling error, points", scale={"zero": True}, **_POINTS)
    drawing = {
        "encoding": {"x": across},
        "layer": [
            {"data": {"values": curve}, "mark": {"type": "line"}, "encoding": {"y": up, "color": colour}},
            {
                "data": {"values": stated},
                "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.45},
                "encoding": {
                    "y": {**up, "field": "low"},
                    "y2": {"field": "high"},
                    "color": colour,
                },
            },
            *(
                {
                    "data": {"values": values},
                    "mark": {"type": "point", "size": 52},
                    "encoding": {"y": up, "color": colour, "shape": shape},
                }
                for values in (stated, seen)
                if values
            ),
        ],
    }
    few, many = sizes[0], sizes[-1]
    return Plot(
        name=f"{benchmark}-samples",
        title="Error against samples",
        summary=f"The sampling error falls from {100 * few.predicted:.2f} points at {few.n} samples a question to "
        f"{100 * many.predicted:.2f} at {many.n}. Lines: the range of 95 % of the errors "
        f"that single runs state.",
        columns=(
            "n",
            "repeats",
            "predicted",
            "stated",
            "stated_low",
            "stated_high",
            "seen",
            "mean_question_deviation",
        ),
        rows=rows,
        drawing=drawing,
        subject=f"{benchmark} · {n_questions} questions: {in_percent(single)} points / √n",
    )


def _step(repeats: Repeats) -> float:
    """Width of a bar: a multiple of the smallest step of an accuracy, about half a predicted deviation."""
    grid = 1 / (repeats.n_questions * repeats.n)
    return grid * max(1, round((repeats.predicted or repeats.deviation) / 2 / grid))


def _normal(x: float, mean: float, deviation: float) -> float:
    """The density of the normal distribution at x; 0 without deviation."""
    if not deviation:
        return 0.0
    return math.exp(-(((x - mean) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
