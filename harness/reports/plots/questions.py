"""Plots of a benchmark's questions: the fraction of right samples of each, and that of two runs against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.nouns import are
from harness.reports.plots.plot import AXIS, SERIES, SHARE, SHARE_AXIS, Cell, Plot, axis
from harness.scoring import QuestionTally
from harness.scoring.intervals import wilson

MAX_QUESTIONS = 1000
"""Largest number of questions in one plot; if there are more, this many are drawn, evenly spaced by difficulty."""

_WITH_ROOM = {"domain": [-0.04, 1.04], "nice": False}
"""Scale of a fraction with margins, so that dots at 0 and 1 are drawn whole."""

_FIFTHS = [0, 0.2, 0.4, 0.6, 0.8, 1]

_TITLE_PX = 260
"""An axis's title is cut to this length, in pixels."""


def question_plot(questions: Sequence[QuestionTally]) -> Plot | None:
    """The fraction of right samples of each question with its 95 % interval, the hardest first.

    None without a sample.
    """
    present = sorted((item for item in questions if item.n), key=lambda item: item.correct / item.n)
    if not present:
        return None
    if len(present) > MAX_QUESTIONS:
        present = [present[rank * len(present) // MAX_QUESTIONS] for rank in range(MAX_QUESTIONS)]
    counts = np.array([float(item.n) for item in present])
    rates = np.array([float(item.correct) for item in present]) / counts
    limits = wilson(rates, counts)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (rank, item.question.question_id, float(rate), float(low), float(high), item.n)
        for rank, (item, rate, low, high) in enumerate(zip(present, rates, limits.low, limits.high, strict=True), 1)
    )
    never = sum(item.correct == 0 for item in present)
    always = sum(item.correct == item.n for item in present)
    few = len(present) <= 100
    across = {"domain": [0.5, len(present) + 0.5], "nice": False}
    drawing = {
        "encoding": {"x": axis("place", "questions, the hardest first", scale=across, tickMinStep=1)},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2 if few else 1, "color": SERIES[0], "opacity": 0.35},
                "encoding": {
                    "y": axis("low", "fraction correct", scale=SHARE, **SHARE_AXIS),
                    "y2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "size": 24 if few else 8, "color": SERIES[0]},
                "encoding": {"y": axis("correct", None, scale=SHARE)},
            },
        ],
    }
    return Plot(
        name="questions",
        title="Questions",
        summary=f"{never} of {len(present)} questions {are(never)} never answered right, {always} always. "
        f"Lines: 95 % intervals of each question, if it were asked again.",
        columns=("place", "question", "correct", "low", "high", "samples"),
        rows=rows,
        drawing=drawing,
    )


def scatter_plot(baseline: str, second: str, pairs: Sequence[tuple[QuestionTally, QuestionTally]]) -> Plot:
    """The fractions of right samples of the same questions in two runs; above the diagonal the second run does better.

    pairs: (question in the baseline, the same in the second run).
    """
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (a.question.question_id, a.correct / a.n, b.correct / b.n, a.n, b.n) for a, b in pairs
    )
    # The fractions are compared crosswise in whole numbers, so that equal ones are equal.
    better = sum(b.correct * a.n > a.correct * b.n for a, b in pairs)
    worse = sum(b.correct * a.n < a.correct * b.n for a, b in pairs)
    across: dict[str, Any] = {"scale": _WITH_ROOM, **SHARE_AXIS, "values": _FIFTHS, "titleLimit": _TITLE_PX}
    line = {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]}
    drawing = {
        "height": 280,
        "layer": [
            {
                "data": line,
                "mark": {"type": "line", "color": AXIS, "strokeDash": [4, 4], "strokeWidth": 1},
                "encoding": {"x": axis("x", baseline, **across), "y": axis("y", second, **across)},
            },
            {
                "mark": {"type": "point", "color": SERIES[0], "opacity": 0.65},
                "encoding": {
                    "x": axis("baseline", baseline, grid=True, **across),
                    "y": axis("other", second, **across),
                    "size": {
                        "aggregate": "count",
                        "type": "quantitative",
                        "scale": {"range": [24, 400]},
                        "legend": None,
                    },
                },
            },
        ],
    }
    return Plot(
        name="scatter",
        title="Question by question",
        summary=f"Across: {baseline}. Up: {second}. Of {len(pairs)} questions {better} {are(better)} answered right "
        f"more often by the second, {worse} by the first. A larger dot stands for several questions.",
        columns=("question", "baseline", "other", "baseline_samples", "other_samples"),
        rows=rows,
        drawing=drawing,
    )
