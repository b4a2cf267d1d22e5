"""Plots of scores: accuracy with its intervals, against the budget of tokens, and against samples per question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.core.nouns import count_noun
from harness.reports.plots.plot import (
    BANDS,
    ENDS,
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
)
from harness.scoring.score import Score
from harness.scoring.stats import Estimate
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
