"""What others report of a model as a strip of points, beside the interval of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.core.nouns import in_percent
from harness.reports.plots.plot import SERIES, SHARE_AXIS, Cell, Plot, axis, labelled_row, labelled_rows
from harness.scoring import PublishedComparison, Score
from harness.scoring.beside import decides

MAX_SOURCES = 24
"""Largest number of sources in a strip; the nearest ones are shown."""

_MARGIN = 0.05
"""Free space at both ends of the axis, a fraction of the accuracy's scale."""


def published_plot(
    name: str, score: Score, comparisons: Sequence[PublishedComparison], *, suite: str = ""
) -> Plot | None:
    """One row for the run, with its 95 % interval as a band over all rows, and one for each source's pass@1.

    name: of run and benchmark, for the title. comparisons: the nearest first (`harness.scoring.beside.in_order`). A
    hollow point is a score that does not count for the verdict: quoted from elsewhere, or measured with another kind of
    attention (sparse, with a token budget). None if the run has no interval, or no source states a pass@1. suite:
    address of the source of the run's suite; empty without one.
    """
    sources = [entry for entry in comparisons if entry.published.metric == "pass@1"][:MAX_SOURCES]
    interval = score.sampling_interval
    if score.accuracy is None or interval is None or not sources:
        return None
    rows: list[tuple[Cell, ...]] = []
    height = 0
    # (text above the row, printed score, accuracy, kind of point)
    ours = ("this run", f"{in_percent(score.accuracy)} %", score.accuracy, "ours")
    theirs = [(entry.published.source.title, f"{entry.published.printed} %", entry.published.value, _mark(entry, suite))
              for entry in sources]  # fmt: skip
    for source, printed, value, mark in (ours, *theirs):
        above, height = labelled_row(height, source, gap=4, room=16)
        rows.append((source, printed, above, height - 8, value, interval.low, interval.high, mark))
    values = [value for _, _, value, _ in theirs] + [score.accuracy, interval.low, interval.high]
    # The scale does not go from 0 to 1, because sources that lie a few points apart would coincide on it.
    scale = {"domain": [max(0.0, min(values) - _MARGIN), min(1.0, max(values) + _MARGIN)], "nice": False}
    return Plot(
        name="published",
        title=f"Beside what others report: {name}",
        summary="Band: the run's 95 % interval (same questions, asked again). Points: pass@1 of each source. Hollow: "
        "quoted from elsewhere, or measured with another attention budget; such a score does not decide the verdict.",
        columns=("source", "printed", "above", "y", "accuracy", "low", "high", "kind"),
        rows=tuple(rows),
        drawing=_drawing(height, scale),
    )


def _mark(comparison: PublishedComparison, suite: str) -> str:
    """The kind of a source's point: "hollow" if its score decides nothing, else "filled"."""
    return "filled" if decides(comparison, suite) else "hollow"


def _drawing(height: int, scale: dict[str, Any]) -> dict[str, Any]:
    """The Vega-Lite drawing: the run's band, then the points, then each row's texts. height: of all rows, in pixels."""
    across = {"scale": scale, **SHARE_AXIS, "grid": True}

    def points(kind_of_point: str, colour: str, **more: Any) -> dict[str, Any]:
        """The layer that draws the points of one kind. more: properties of Vega-Lite's mark."""
        return {
            "transform": [{"filter": {"field": "kind", "equal": kind_of_point}}],
            "mark": {"type": "point", "size": 56, "color": colour, **more},
            "encoding": {"x": axis("accuracy", None, scale=scale)},
        }

    band: dict[str, Any] = {
        "transform": [{"filter": {"field": "kind", "equal": "ours"}}],
        "mark": {"type": "rect", "opacity": 0.18, "color": SERIES[0]},
        "encoding": {
            "x": axis("low", None, **across),
            "x2": {"field": "high"},
            "y": {"value": 0},
            "y2": {"value": "height"},
        },
    }
    layers = [
        band,
        points("ours", SERIES[0]),
        points("filled", SERIES[1], shape="diamond"),
        points("hollow", SERIES[1], shape="diamond", filled=False),
    ]
    return labelled_rows(height, layers, name="source", value="printed")
