"""A plot of a benchmark's questions: the fractions of right samples of two runs against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.core.nouns import are
from harness.reports.plots.plot import AXIS, SERIES, SHARE_AXIS, Cell, Plot, axis, layer
from harness.scoring.tally import QuestionTally

_WITH_ROOM = {"domain": [-0.04, 1.04], "nice": False}
"""Scale of a fraction with margins, so that dots at 0 and 1 are drawn whole."""

_FIFTHS = [0, 0.2, 0.4, 0.6, 0.8, 1]
"""The fractions that an axis labels."""

_TITLE_PX = 260
"""An axis's title is cut to this length, in pixels."""


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
    across: dict[str, Any] = {"scale": _WITH_ROOM, **SHARE_AXIS, "values": _FIFTHS, "titleLimit": _TITLE_PX}
    ends = {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]}
    dashed = {"color": AXIS, "strokeDash": [4, 4], "strokeWidth": 1}
    diagonal = layer("line", dashed, x=axis("x", baseline, **across), y=axis("y", second, **across))
    dots = layer(
        "point",
        {"color": SERIES[0], "opacity": 0.65},
        x=axis("baseline", baseline, grid=True, **across),
        y=axis("other", second, **across),
        size={"aggregate": "count", "type": "quantitative", "scale": {"range": [24, 400]}, "legend": None},
    )
    return Plot(
        name="scatter",
        title="Question by question",
        summary=f"Across: {baseline}. Up: {second}. Of {len(pairs)} questions {better} {are(better)} answered right "
        f"more often by the second, {worse} by the first. A larger dot stands for several questions.",
        columns=("question", "baseline", "other", "baseline_samples", "other_samples"),
        rows=rows,
        drawing={"height": 280, "layer": [{"data": ends, **diagonal}, dots]},
    )
