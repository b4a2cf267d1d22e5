"""A plot of a benchmark's questions: the fractions of right samples of two runs against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from harness.core.inert import visible
from harness.core.nouns import are
from harness.reports.plots.plot import AXIS, FIFTHS, LABEL_CHARS, Axis, Cell, Dot, Plot, Stroke
from harness.scoring.tally import QuestionTally

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
