"""Plots of scores (accuracy with its intervals, by budget, by samples, by question) and of server load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.core.number_text import count_noun, in_points
from harness.core.sanitize import visible
from harness.reports.plots import plot
from harness.reports.plots.plot import Axis, Cell, Dot, Mark, Plot, Stroke, Words, lines_plot, round_values
from harness.scoring.engine_metrics import Moment
from harness.scoring.score import Score
from harness.scoring.stats import Estimate
from harness.scoring.table_cells import value_cell

MAX_ROWS = 60
"""Largest number of accuracies in one plot; only the first ones are drawn."""


class PublishedTick(NamedTuple):
    """A published number shown next to an accuracy. source: its short name. printed: the number as its source prints
    it, in percent.
    """

    source: str
    printed: str
    value: float


class Labeled(NamedTuple):
    """An accuracy, its name in the plot, and the corresponding published numbers."""

    label: str
    accuracy: Estimate | None
    published: Sequence[PublishedTick] = ()


def difference_plot(differences: Sequence[Labeled]) -> Plot | None:
    """The plot of differences from baselines, in points, in the form of an `accuracy_plot`; None without any."""
    ends = [100 * number for each in differences for number in numbers_of(each.accuracy) if number is not None]
    if not ends:
        return None
    low, high = min(0.0, *ends), max(0.0, *ends)
    ticks = [(value / 100, f"{value:+g}" if value else "0") for value in round_values(low, high)]
    drawn = accuracy_plot(differences, title="Difference in points", axis=Axis(low / 100, high / 100, ticks, grid=True))
    assert drawn is not None
    zero = Stroke([(0, 0), (0, drawn.height)], plot.AXIS, 1, dash="4 4")
    return replace(drawn, name="difference", marks=[zero, *drawn.marks])


def accuracy_plot(scores: Sequence[Labeled], *, title: str = "Accuracy", axis: Axis | None = None) -> Plot | None:
    """One row per score: dot = accuracy, thick line = sampling interval, thin line = question interval, vertical ticks
    = published scores. None if there are no accuracies. axis: of differences in points.
    """
    present = [each for each in scores if each.accuracy is not None]
    shown, marks, ticks, y = present[:MAX_ROWS], list[Mark](), list[Mark](), 0.0
    drawn = [number for each in shown for number in numbers_of(each.accuracy)]
    text_of = value_cell if axis is None else lambda each, _: in_points(each.value)
    axis = axis or plot.share_axis([*drawn, *(one.value for each in shown for one in each.published)])
    rows: list[tuple[Cell, ...]] = []
    for each in shown:
        value, low, high, question_low, question_high = numbers_of(each.accuracy)
        reported = " · ".join(f"{one.source} {one.printed}" for one in each.published)
        rows.append((each.label, text_of(each.accuracy, "%"), reported, value, low, high, question_low, question_high))
        heading = plot.label(each.label, plot.LABEL_CHARS - 8)
        marks += [Words((axis.low, y + 11), heading), Words((axis.high, y + 11), str(rows[-1][1]), plot.INK, end=True)]
        y += plot.LINE_PX * heading.count("\n") + 26
        for start, end, width, opacity in ((question_low, question_high, 1.5, 1), (low, high, 6, 0.45)):
            if start is not None and end is not None:
                marks.append(Stroke([(start, y), (end, y)], width=width, opacity=opacity))
        marks.append(Dot((value or 0.0, y)))
        ticks += [
            Dot((one.value, y), plot.SERIES[1], plot.TICK, title=f"{one.source} {one.printed}%")
            for one in each.published
        ]
        if reported:
            below = plot.label(f"published: {reported}")
            marks.append(Words((axis.low, y + 23), below))
            y += plot.LINE_PX * (below.count("\n") + 1) + 6
        y += 16
    if not rows:
        return None
    cut = f" The first {MAX_ROWS} of {len(present)}." if len(present) > MAX_ROWS else ""
    across = " Vertical ticks: published scores." if ticks else ""
    return Plot(
        name="accuracy",
        title=title,
        summary="Thick line: 95% interval for the same questions, sampled again. Thin line: 95% interval for new "
        f"questions of the same kind.{across}{cut}",
        columns=("series", "value", "published", "accuracy", "sampling_low", "sampling_high", *plot.ENDS[2:]),
        rows=tuple(rows),
        x=axis,
        y=Axis(y, 0),
        marks=[*marks, *ticks],
        height=y,
        subject=cut.strip(),
    )


def budget_plot(scores: Sequence[tuple[str, Score]]) -> Plot | None:
    """Accuracy against the token budget, one line per (label, score); None if no score has budgets."""
    rows: list[tuple[Cell, ...]] = [
        (name, tokens, *numbers_of(budget.accuracy), budget.cut)
        for name, score in scores
        for tokens, budget in score.budgets.items()
    ]
    budgets = sorted({tokens for _, score in scores for tokens in score.budgets})
    if len(budgets) < 2:
        return None
    ticks = [(n, f"{n / 1024:.3g}k" if n >= 1024 else str(n)) for n in budgets]
    return lines_plot(
        "budgets",
        "Accuracy vs. token budget",
        f"A reply longer than the budget counts as wrong. {plot.BANDS}",
        ("series", "budget", "accuracy", *plot.ENDS, "cut"),
        rows,
        Axis(budgets[0], budgets[-1], ticks, "completion tokens allowed", doubling=True),
    )


def curve_plot(score: Score) -> Plot | None:
    """The plot of pass@k, pass^k and maj@k against k, with sampling intervals; None if the score has only one k."""
    kinds = {
        "pass@k: any of k correct": score.pass_at,
        "maj@k: majority correct": score.maj_at,
        "pass^k: all k correct": score.pass_hat,
    }
    rows: list[tuple[Cell, ...]] = [
        (name, k, *numbers_of(estimate)[:3]) for name, by_k in kinds.items() for k, estimate in sorted(by_k.items())
    ]
    ks = sorted(score.pass_at)
    if len(ks) < 2:
        return None
    most = ks[-1]
    any_right = f"{score.pass_at[most].value:.0%}"
    majority = f", majority correct {score.maj_at[most].value:.0%}" if most in score.maj_at else ""
    return lines_plot(
        "curves",
        "More samples",
        f"With {count_noun(most, 'sample')} per question: at least one correct {any_right}{majority}. {plot.BANDS}",
        ("series", "k", "value", "low", "high"),
        rows,
        Axis(ks[0], most, [(k, str(k)) for k in ks], "samples per question, k", doubling=True),
    )


def numbers_of(estimate: Estimate | None) -> tuple[float | None, ...]:
    """The value and the four ends of both intervals; None for each unknown number."""
    if estimate is None:
        return (None,) * 5
    return estimate.value, *(estimate.sampling or (None, None)), *(estimate.question or (None, None))


_WITH_ROOM = Axis(-0.04, 1.04, plot.FIFTHS, grid=True)
"""The axis of a fraction with margins, so that dots at 0 and 1 are drawn whole."""


PairedShares = tuple[str, float, float, int, int]
"""A question in two runs: its id, the fraction of right samples in each, and the number of samples in each."""


def scatter_plot(
    baseline: str, second: str, rows: Sequence[PairedShares], words: tuple[str, str] = ("wrong", "right")
) -> Plot:
    """The fractions of right samples of questions in two runs. Above the diagonal, the second run is better.

    With one sample of each question, it is a table of 2 × 2 counts. words: its names for a wrong and a right sample.
    """
    better, worse = (sum(sign * (b - a) > 0 for _, a, b, *_ in rows) for sign in (1, -1))
    counts = Counter((a, b) for _, a, b, *_ in rows)
    dots: list[Mark] = [Dot(at, size=min(3.0, 0.8 * n**0.5), opacity=0.65) for at, n in counts.items()]
    axis, diagonal = _WITH_ROOM, [Stroke([(0, 0), (1, 1)], plot.AXIS, 1, dash="4 4")]
    larger = "A larger dot represents several questions."
    if counts.keys() <= {(x, y) for x in (0.0, 1.0) for y in (0.0, 1.0)}:  # one verdict per question
        dots = [Words((0.25 + x / 2, 0.25 + y / 2), f"{n:,}", plot.INK) for (x, y), n in counts.items()]
        axis, diagonal = Axis(0, 1, [(0.25, words[0]), (0.75, words[1])]), []
        dots += [Stroke(ends, plot.AXIS, 1) for ends in ([(0.5, 0), (0.5, 1)], [(0, 0.5), (1, 0.5)])]
        larger = "Numbers: questions by the verdicts of both runs."
    return Plot(
        name="scatter",
        title="Question by question",
        summary=f"Horizontal: {baseline}. Vertical: {second}. Of {len(rows)} questions, the second run is better on "
        f"{better}, the first on {worse}. {larger}",
        columns=("question", "baseline", "other", "baseline_samples", "other_samples"),
        rows=tuple(rows),
        x=replace(axis, title=visible(baseline, plot.LABEL_CHARS - 2)),
        y=replace(axis, title=visible(second, plot.LABEL_CHARS - 2)),
        marks=[*diagonal, *dots],
        height=280,
    )


MOMENTS = range(4, 121)
"""Minimum number of moments for a plot, and maximum number shown."""


def load_plots(moments: Sequence[Moment]) -> list[Plot]:
    """The client's tokens per second, and the running and waiting requests from the servers' pages; empty for a short
    run.
    """
    shown = moments[:: 1 + len(moments) // MOMENTS.stop]
    if len(shown) < MOMENTS.start:
        return []
    speed = [("client", moment.minutes, moment.tokens / moment.seconds) for moment in shown]
    requests = [(name, moment.minutes, getattr(moment, name)) for name in ("running", "waiting") for moment in shown]
    return [
        _plot("tokens-over-time", "Tokens per second, measured by the client", speed),
        _plot("requests-over-time", "Requests, reported by the servers", requests),
    ]


def _plot(name: str, title: str, points: Sequence[tuple[str, float, float | None]]) -> Plot:
    end, top = points[-1][1], max(1.0, *(value for *_, value in points if value is not None))
    x = Axis(0, end, [(value, f"{value:g}") for value in round_values(0, end)], "run time in minutes, excluding pauses")
    columns = ("series", "minutes", "value", "low", "high")
    rows = [(*point, None, None) for point in points]
    return lines_plot(name, title, "", columns, rows, x, plot.zero_axis(top, at_most=5))


def plan_plot(noun: str, target: float | None, plans: Mapping[str, Mapping[int, float]]) -> Plot:
    """The smallest difference that two new runs can detect, against their number of samples per question.

    noun: "difference" or "margin". target: the difference to be detected, as a fraction; None: no target. plans:
    benchmark → number of samples per question → difference, as a fraction.
    """
    rows: list[tuple[Cell, ...]] = [
        (name, n, value, None, None) for name, by_samples in plans.items() for n, value in by_samples.items()
    ]
    numbers = sorted({1}.union(*plans.values()))
    top = max([target or 0.01, *(value for by_samples in plans.values() for value in by_samples.values())])
    return lines_plot(
        "plan",
        f"Minimum detectable {noun} by number of samples",
        "The difference that two new runs of this size can detect with 80% power. Dashed: the target.",
        ("benchmark", "samples", noun, "low", "high"),
        rows,
        Axis(numbers[0], numbers[-1], [(n, f"{n:,}") for n in numbers], "samples per question", doubling=True),
        _points(1.05 * top, f"smallest {noun}, points"),
        [] if target is None else [Stroke([(numbers[0], target), (numbers[-1], target)], plot.INK, 1, dash="4 3")],
    )


def _points(top: float, title: str) -> Axis:
    """An axis of differences in points, from 0 to the fraction `top`."""
    return Axis(0, top, [(value, f"{100 * value:.4g}") for value in round_values(0, top)], title, grid=True)
