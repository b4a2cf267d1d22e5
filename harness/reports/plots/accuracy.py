"""Plots of scores (accuracy with its intervals, by budget, by samples, by question) and of the servers' load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.core.inert import visible
from harness.core.nouns import are, count_noun
from harness.reports.plots.plot import (
    AXIS,
    BANDS,
    ENDS,
    FIFTHS,
    INK,
    LABEL_CHARS,
    LINE_PX,
    SERIES,
    SHARE,
    TICK,
    Axis,
    Cell,
    Dot,
    Mark,
    Plot,
    Stroke,
    Words,
    label,
    lines_plot,
    round_values,
)
from harness.scoring.engine_figures import Moment
from harness.scoring.score import Score
from harness.scoring.stats import Estimate
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import value_cell

MAX_ROWS = 60
"""Largest number of accuracies in one plot: the first."""


class PublishedTick(NamedTuple):
    """A published number beside an accuracy. source: its short name. printed: as its source prints it, in percent."""

    source: str
    printed: str
    value: float


class Labelled(NamedTuple):
    """An accuracy, its name in the plot, and what others have published of the same."""

    label: str
    accuracy: Estimate | None
    published: Sequence[PublishedTick] = ()


def accuracy_plot(scores: Sequence[Labelled], *, title: str = "Accuracy") -> Plot | None:
    """One row a score: dot = accuracy, thick line = sampling interval, thin line = question interval, ticks across =
    published scores. None without any accuracy.
    """
    present = [each for each in scores if each.accuracy is not None]
    shown, marks, ticks, y = present[:MAX_ROWS], list[Mark](), list[Mark](), 0.0
    rows: list[tuple[Cell, ...]] = []
    for each in shown:
        value, low, high, question_low, question_high = numbers_of(each.accuracy)
        reported = " · ".join(f"{one.source} {one.printed}" for one in each.published)
        rows.append(
            (each.label, value_cell(each.accuracy, " %"), reported, value, low, high, question_low, question_high)
        )
        heading = label(each.label, LABEL_CHARS - 8)
        marks += [Words((0, y + 11), heading), Words((1, y + 11), str(rows[-1][1]), INK, end=True)]
        y += LINE_PX * heading.count("\n") + 26
        for start, end, width, opacity in ((question_low, question_high, 1.5, 1), (low, high, 6, 0.45)):
            if start is not None and end is not None:
                marks.append(Stroke([(start, y), (end, y)], width=width, opacity=opacity))
        marks.append(Dot((value or 0.0, y)))
        ticks += [Dot((one.value, y), SERIES[1], TICK, title=f"{one.source} {one.printed} %") for one in each.published]
        if reported:
            below = label(f"published: {reported}")
            marks.append(Words((0, y + 23), below))
            y += LINE_PX * (below.count("\n") + 1) + 6
        y += 16
    if not rows:
        return None
    cut = f" The first {MAX_ROWS} of {len(present)}." if len(present) > MAX_ROWS else ""
    across = " Ticks across: published scores." if ticks else ""
    return Plot(
        name="accuracy",
        title=title,
        summary="Thick line: 95 % interval, same questions, asked again. Thin line: other questions of this kind."
        f"{across}{cut}",
        columns=("series", "value", "published", "accuracy", "sampling_low", "sampling_high", *ENDS[2:]),
        rows=tuple(rows),
        x=SHARE,
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
        "Accuracy against token budget",
        f"A reply longer than the budget counts as wrong. {BANDS}",
        ("series", "budget", "accuracy", *ENDS, "cut"),
        rows,
        Axis(budgets[0], budgets[-1], ticks, "completion tokens allowed", doubling=True),
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
    return lines_plot(
        "curves",
        "More samples",
        f"With {count_noun(most, 'sample')} a question: any right {any_right}{majority}. {BANDS}",
        ("series", "k", "value", "low", "high"),
        rows,
        Axis(ks[0], most, [(k, str(k)) for k in ks], "samples a question, k", doubling=True),
    )


def numbers_of(estimate: Estimate | None) -> tuple[float | None, ...]:
    """The value and the four ends of both intervals; None for each that is not known."""
    if estimate is None:
        return (None,) * 5
    return estimate.value, *(estimate.sampling or (None, None)), *(estimate.question or (None, None))


_WITH_ROOM = Axis(-0.04, 1.04, FIFTHS, grid=True)
"""The axis of a fraction with margins, so that dots at 0 and 1 are drawn whole."""


def scatter_plot(baseline: str, second: str, pairs: Sequence[tuple[QuestionTally, QuestionTally]]) -> Plot:
    """The fractions of right samples of the same questions in two runs; above the diagonal the second run does better.

    pairs: (question in the baseline, the same in the second run).
    """
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (a.question.question_id, a.right / a.n, b.right / b.n, a.n, b.n) for a, b in pairs
    )
    # The fractions are compared crosswise in whole numbers, so that equal ones are equal.
    better = sum(b.right * a.n > a.right * b.n for a, b in pairs)
    worse = sum(b.right * a.n < a.right * b.n for a, b in pairs)
    counts = Counter((a.right / a.n, b.right / b.n) for a, b in pairs)
    dots = [Dot(at, size=min(3.0, 0.8 * n**0.5), opacity=0.65) for at, n in counts.items()]
    return Plot(
        name="scatter",
        title="Question by question",
        summary=f"Across: {baseline}. Up: {second}. Of {len(pairs)} questions {better} {are(better)} answered right "
        f"more often by the second, {worse} by the first. A larger dot stands for several questions.",
        columns=("question", "baseline", "other", "baseline_samples", "other_samples"),
        rows=rows,
        x=replace(_WITH_ROOM, title=visible(baseline, LABEL_CHARS - 2)),
        y=replace(_WITH_ROOM, title=visible(second, LABEL_CHARS - 2)),
        marks=[Stroke([(0, 0), (1, 1)], AXIS, 1, dash="4 4"), *dots],
        height=280,
    )


MOMENTS = range(4, 121)
"""Fewest moments that make a picture, and most that it shows."""


def load_plots(moments: Sequence[Moment]) -> list[Plot]:
    """The client's tokens a second, and the requests that run and wait by the servers' pages; empty for a short run."""
    shown = moments[:: 1 + len(moments) // MOMENTS.stop]
    if len(shown) < MOMENTS.start:
        return []
    speed = [("client", moment.minutes, moment.tokens / moment.seconds) for moment in shown]
    requests = [(name, moment.minutes, getattr(moment, name)) for name in ("running", "waiting") for moment in shown]
    return [
        _plot("tokens-over-time", "Tokens a second, by the client", speed),
        _plot("requests-over-time", "Requests, by the servers' own pages", requests),
    ]


def _plot(name: str, title: str, points: Sequence[tuple[str, float, float | None]]) -> Plot:
    end, top = points[-1][1], max(1.0, *(value for *_, value in points if value is not None))
    x = Axis(0, end, [(value, f"{value:g}") for value in round_values(0, end)], "minutes of the run, without pauses")
    y = Axis(0, top, [(value, f"{value:,g}") for value in round_values(0, top, 5)], grid=True)
    columns = ("series", "minutes", "value", "low", "high")
    return lines_plot(name, title, "", columns, [(*point, None, None) for point in points], x, y)
