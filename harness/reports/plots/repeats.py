"""Plots of experiments: where the accuracies of repeated runs lie, what error they have, what new runs will find."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.core.nouns import in_percent
from harness.reports.plots.plot import INK, SERIES, Axis, Cell, Mark, Plot, Stroke, key_of, lines_plot, round_values
from harness.scoring.repeats import Repeats, SampleSize
from harness.scoring.stats import Z_95

CURVE_POINTS = 120
"""Number of points by which a smooth curve is drawn."""


def repeats_plot(benchmark: str, names: Sequence[str], repeats: Repeats) -> Plot:
    """The histogram of the accuracies under the normal curve that the sampling error predicts. names: of the runs.

    The range of 95 % of repeats, as predicted, is shaded.
    """
    runs, mean, predicted, width = len(names), repeats.mean, repeats.predicted, _bar_width(repeats)
    reach = 3.5 * predicted or 0.05  # A predicted spread of 0 leaves no width to the picture.
    low = max(0.0, min(mean - reach, *(accuracy - width for accuracy in repeats.accuracies)))
    high = min(1.0, max(mean + reach, *(accuracy + width for accuracy in repeats.accuracies)))
    first = min(repeats.accuracies) - width / 2
    # An accuracy on the edge of a bar must not fall one bar short by rounding.
    counts = Counter(math.floor((accuracy - first) / width + 1e-9) for accuracy in repeats.accuracies)
    marks: list[Mark] = []
    for number, n in counts.items():
        begin, end = first + number * width, first + (number + 1) * width
        marks.append(_bar(begin, end, n, SERIES[0], 0.7))
    top = float(max(counts.values()))
    if predicted:
        at = [low + (high - low) * step / CURVE_POINTS for step in range(CURVE_POINTS + 1)]
        peak = runs * width / (predicted * math.sqrt(2 * math.pi))
        curve = [(x, peak * math.exp(-(((x - mean) / predicted) ** 2) / 2)) for x in at]
        marks.append(Stroke(curve, SERIES[1]))
        top = max(top, peak)
    top *= 1.05
    begin, end = mean - Z_95 * predicted, mean + Z_95 * predicted
    shade = _bar(begin, end, top, SERIES[1], 0.1)
    digits = 1 if high - low < 0.12 else 0
    low_limit, high_limit = (100 * end for end in repeats.limits)
    return Plot(
        name=f"{benchmark}-repeats",
        title="Accuracy of repeated runs",
        summary=f"{runs} repeats of {repeats.n} samples a question. Their accuracies "
        f"deviate by {100 * repeats.deviation:.2f} points; {100 * predicted:.2f} are predicted, and "
        f"chance explains {low_limit:.2f} to {high_limit:.2f}. Shaded: 95 % of repeats, by the prediction.",
        columns=("repeat", "accuracy", "sampling_error"),
        rows=tuple(zip(names, repeats.accuracies, repeats.errors, strict=True)),
        x=Axis(low, high, [(value, f"{value:.{digits}%}") for value in round_values(low, high)], "accuracy"),
        y=Axis(0, top, [(n, f"{n:.0f}") for n in round_values(0, top, 5) if n == int(n)], "repeats", grid=True),
        marks=[shade, *marks],
        legend=[(f"{runs} repeats", key_of(0)), ("predicted by the sampling error", key_of(1))],
        subject=f"{benchmark}, {repeats.n_questions} × {repeats.n}: {100 * repeats.deviation:.2f} points "
        f"observed, {100 * predicted:.2f} predicted",
    )


def _bar(begin: float, end: float, height: float, colour: str, opacity: float) -> Stroke:
    outline = [(begin, 0.0), (begin, height), (end, height), (end, 0.0)]
    return Stroke(outline, colour, opacity=opacity, filled=True)


def _bar_width(repeats: Repeats) -> float:
    """Width of a bar: a multiple of the smallest step of an accuracy, about half a predicted deviation."""
    grid = 1 / (repeats.n_questions * repeats.n)
    return grid * max(1, round((repeats.predicted or repeats.deviation) / 2 / grid))


def sizes_plot(benchmark: str, n_questions: int, sizes: Sequence[SampleSize]) -> Plot:
    """The sampling error against the samples of each question: predicted, stated by single runs, and observed."""
    columns = ("n", "runs", "predicted", "own", "own_low", "own_high", "deviation", "mean_question_deviation")
    few, many = sizes[0], sizes[-1]
    single = few.predicted * math.sqrt(few.n)  # the error of one sample a question
    at = [few.n * (many.n / few.n) ** (step / CURVE_POINTS) for step in range(CURVE_POINTS + 1)]
    marks: list[Mark] = [Stroke([(n, single / math.sqrt(n)) for n in at])]
    seen = [(size.n, size.deviation) for size in sizes if size.deviation is not None]
    stated, observed = key_of(1), key_of(2)
    marks += [Stroke([(size.n, size.own_low), (size.n, size.own_high)], stated.colour, opacity=0.45) for size in sizes]
    marks += [replace(stated, at=(size.n, size.own)) for size in sizes] + [
        replace(observed, at=point) for point in seen
    ]
    top = 1.05 * max([few.predicted, *(size.own_high for size in sizes), *(deviation for _, deviation in seen)])
    kinds = ["predicted, falls with √n", "stated by a run of n", *(["observed between repeats"] if seen else [])]
    return Plot(
        name=f"{benchmark}-samples",
        title="Error against samples",
        summary=f"The sampling error falls from {100 * few.predicted:.2f} points at {few.n} samples a question to "
        f"{100 * many.predicted:.2f} at {many.n}. Lines: the range of 95 % of the errors that single runs state.",
        columns=("n", "repeats", "predicted", "stated", "stated_low", "stated_high", "seen", columns[-1]),
        rows=tuple(tuple(getattr(size, column) for column in columns) for size in sizes),
        x=Axis(few.n, many.n, [(size.n, str(size.n)) for size in sizes], "samples a question, n", doubling=True),
        y=_points(top, "sampling error, points"),
        marks=marks,
        legend=[(kind, key_of(number)) for number, kind in enumerate(kinds)],
        subject=f"{benchmark} · {n_questions} questions: {in_percent(single)} points / √n",
    )


def plan_plot(noun: str, target: float | None, plans: Mapping[str, Mapping[int, float]]) -> Plot:
    """The smallest difference that two new runs find, against their samples of each question.

    noun: "difference" or "margin". target: what is to be found, a fraction; None: nothing. plans: benchmark → samples
    of each question → difference, a fraction.
    """
    rows: list[tuple[Cell, ...]] = [
        (name, n, value, None, None) for name, by_samples in plans.items() for n, value in by_samples.items()
    ]
    numbers = sorted({1}.union(*plans.values()))
    top = max([target or 0.01, *(value for by_samples in plans.values() for value in by_samples.values())])
    return lines_plot(
        "plan",
        f"Smallest {noun} against samples",
        "What two new runs of so many samples find in 80 % of repetitions. Dashed: what is wanted.",
        ("benchmark", "samples", noun, "low", "high"),
        rows,
        Axis(numbers[0], numbers[-1], [(n, f"{n:,}") for n in numbers], "samples a question", doubling=True),
        _points(1.05 * top, f"smallest {noun}, points"),
        [] if target is None else [Stroke([(numbers[0], target), (numbers[-1], target)], INK, 1, dash="4 3")],
    )


def _points(top: float, title: str) -> Axis:
    """An axis of differences in points, from 0 to the fraction `top`."""
    return Axis(0, top, [(value, f"{100 * value:.4g}") for value in round_values(0, top)], title, grid=True)
