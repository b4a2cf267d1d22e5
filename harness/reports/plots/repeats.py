"""Plots of experiments on repeated runs: where their accuracies lie, and the error against the number of samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.core.nouns import in_percent
from harness.reports.plots.plot import DOUBLING, SERIES, Plot, axis, layer
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
    runs, predicted, width = len(names), repeats.predicted, _bar_width(repeats)
    reach = 3.5 * predicted or 0.05  # A predicted spread of 0 leaves no width to the picture.
    low = max(0.0, min(repeats.mean - reach, *(accuracy - width for accuracy in repeats.accuracies)))
    high = min(1.0, max(repeats.mean + reach, *(accuracy + width for accuracy in repeats.accuracies)))
    across: dict[str, Any] = {
        "scale": {"domain": [low, high], "nice": False, "clamp": True},
        "format": ".1%" if high - low < 0.12 else ".0%",
    }
    first = min(repeats.accuracies) - width / 2
    # An accuracy on the edge of a bar must not fall one bar short by rounding.
    begin = f"{first} + {width} * floor((datum.accuracy - {first}) / {width} + 1e-9)"
    band = {"from": repeats.mean - Z_95 * predicted, "to": repeats.mean + Z_95 * predicted}
    density = f"{runs * width} * densityNormal(datum.accuracy, {repeats.mean}, {predicted})"
    kinds = [f"{runs} repeats", "predicted by the sampling error"]
    colours = [_of_kind(kinds, kind) for kind in kinds]
    begins, up = axis("from", "accuracy", **across), axis("repeats", "repeats", tickMinStep=1, format="d")
    shade = layer("rect", {"color": SERIES[1], "opacity": 0.1}, x=begins, x2={"field": "to"})
    look, binned = {"opacity": 0.7, "binSpacing": 1}, {**begins, "bin": "binned"}
    bars = layer("bar", look, x=binned, x2={"field": "to"}, y=up, color=colours[0])
    bars["transform"] = [
        {"calculate": begin, "as": "from"},
        {"calculate": f"datum.from + {width}", "as": "to"},
        {"aggregate": [{"op": "count", "as": "repeats"}], "groupby": ["from", "to"]},
    ]
    along = {"start": low, "stop": high, "step": (high - low) / CURVE_POINTS, "as": "accuracy"}
    curve = {
        "data": {"sequence": along},
        "transform": [{"calculate": density, "as": "repeats"}],
        **layer("line", x=axis("accuracy", "accuracy", **across), y=axis("repeats", "repeats"), color=colours[1]),
    }
    low_limit, high_limit = (100 * end for end in repeats.limits)
    return Plot(
        name=f"{benchmark}-repeats",
        title="Accuracy of repeated runs",
        summary=f"{runs} repeats of {repeats.n} samples a question. Their accuracies "
        f"deviate by {100 * repeats.deviation:.2f} points; {100 * predicted:.2f} are predicted, and "
        f"chance explains {low_limit:.2f} to {high_limit:.2f}. Shaded: 95 % of repeats, by the prediction.",
        columns=("repeat", "accuracy", "sampling_error"),
        rows=tuple(zip(names, repeats.accuracies, repeats.errors, strict=True)),
        drawing={"layer": [{"data": {"values": [band]}, **shade}, bars, *([curve] if predicted else [])]},
        subject=f"{benchmark}, {repeats.n_questions} × {repeats.n}: {100 * repeats.deviation:.2f} points "
        f"observed, {100 * predicted:.2f} predicted",
    )


def _bar_width(repeats: Repeats) -> float:
    """Width of a bar: a multiple of the smallest step of an accuracy, about half a predicted deviation."""
    grid = 1 / (repeats.n_questions * repeats.n)
    return grid * max(1, round((repeats.predicted or repeats.deviation) / 2 / grid))


def sizes_plot(benchmark: str, n_questions: int, sizes: Sequence[SampleSize]) -> Plot:
    """The sampling error against the samples of each question: predicted, stated by single runs, and observed."""
    columns = ("n", "runs", "predicted", "own", "own_low", "own_high", "deviation", "mean_question_deviation")
    few, many = sizes[0], sizes[-1]
    single = few.predicted * math.sqrt(few.n)  # the error of one sample a question
    kinds = ["predicted, falls with √n", "stated by a run of n", "observed between repeats"]
    kinds = kinds if any(size.deviation is not None for size in sizes) else kinds[:2]
    up: dict[str, Any] = {"title": "sampling error, points", "scale": {"zero": True}, **_POINTS}
    step = (math.log2(many.n) - math.log2(few.n)) / CURVE_POINTS
    of_kind = [{"color": _of_kind(kinds, kind), "shape": _of_kind(kinds, kind, shapes=True)} for kind in kinds]
    curve = layer("line", y=axis("error", **up), color=of_kind[0]["color"])
    curve["data"] = {"sequence": {"start": 0, "stop": CURVE_POINTS + 1, "as": "step"}}
    curve["transform"] = [
        {"calculate": f"pow(2, {math.log2(few.n)} + {step} * datum.step)", "as": "n"},
        {"calculate": f"{single} / sqrt(datum.n)", "as": "error"},
    ]
    ranges = {"y": axis("stated_low", **up), "y2": {"field": "stated_high"}, "color": of_kind[1]["color"]}
    layers = [curve, layer("rule", {"strokeWidth": 2, "opacity": 0.45}, **ranges)]
    for looks, column in zip(of_kind[1:], ("stated", "seen"), strict=False):
        valid = {"transform": [{"filter": f"isValid(datum.{column})"}]}
        layers.append(valid | layer("point", {"size": 52}, y=axis(column, **up), **looks))
    across = axis("n", "samples a question, n", scale=DOUBLING, values=[size.n for size in sizes], format="d")
    return Plot(
        name=f"{benchmark}-samples",
        title="Error against samples",
        summary=f"The sampling error falls from {100 * few.predicted:.2f} points at {few.n} samples a question to "
        f"{100 * many.predicted:.2f} at {many.n}. Lines: the range of 95 % of the errors that single runs state.",
        columns=("n", "repeats", "predicted", "stated", "stated_low", "stated_high", "seen", columns[-1]),
        rows=tuple(tuple(getattr(size, column) for column in columns) for size in sizes),
        drawing={"encoding": {"x": across}, "layer": layers},
        subject=f"{benchmark} · {n_questions} questions: {in_percent(single)} points / √n",
    )


def _of_kind(kinds: Sequence[str], kind: str, *, shapes: bool = False) -> dict[str, Any]:
    """The encoding by colour (or by shape) of a layer whose marks are all of one kind; the legend lists all kinds."""
    encoding = series_of(kinds, shapes=shapes)
    # No column of the rows says the kind: in place of a `field`, Vega-Lite takes a constant, `datum`.
    del encoding["field"]
    return {**encoding, "datum": kind}
