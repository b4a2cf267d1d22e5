"""A plot as a value: rows of data, a sentence that describes them, and a Vega-Lite specification. Pure.

Every plot is `WIDTH` pixels wide, so that its text keeps its size on a telephone, in a grid on a screen, and in print.
Foreign text is data in a plot, never part of an expression that Vega evaluates.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.core.inert import csv_text, visible

Cell = str | float | int | None
"""A value of a plot's data."""

WIDTH = 384
"""Pixels of a plot with its axes."""

HEIGHT = 200
"""Pixels between the axes of a plot, unless its height follows from its rows."""

LABEL_CHARS = 56
"""A line of a label holds at most this many characters; a longer label takes several lines."""

MAX_LABEL_CHARS = 3 * LABEL_CHARS
"""Longest label that is drawn whole, in characters; a longer one is clipped."""

INK, SOFT, AXIS, GRID = "#1f2328", "#59636e", "#8c959f", "#e3e7eb"
"""Light colours of text, lesser text, axis lines and grid lines. `page.css` has the dark twin of each."""

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a07800", "#3f9bd8")
"""Colours of runs or curves, repeated after the last; colour-blind readers can tell them apart (Okabe and Ito 2008)."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
"""Marks that go with `SERIES`, for readers and printers without colour."""

CONFIG: Mapping[str, Any] = {
    "aria": False,  # The figure has one sentence for screen readers; a role on each of 800 dots would only be noise.
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": SOFT,
        "labelFontSize": 11,
        "titleColor": SOFT,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 6,
        "domainColor": AXIS,
        "tickColor": AXIS,
        "gridColor": GRID,
        "tickSize": 4,
    },
    "axisY": {"domain": False, "ticks": False, "tickCount": 6, "labelPadding": 6},
    "axisX": {"grid": False, "tickCount": 6, "labelOverlap": True, "labelSeparation": 6},
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": INK,
        "labelFontSize": 11,
        "labelLimit": 0,
        "symbolSize": 70,
        "symbolStrokeWidth": 2,
        "columnPadding": 12,
        "rowPadding": 3,
        "offset": 8,
    },
    "title": {"anchor": "start", "color": INK, "fontSize": 13, "subtitleColor": SOFT, "subtitleFontSize": 11},
    "text": {"color": INK, "fontSize": 11},
    "line": {"strokeWidth": 2},
    "area": {"opacity": 0.18},
    "point": {"filled": True, "size": 36, "opacity": 1},
}
"""The look of every plot: Vega-Lite's configuration."""

SHARE: Mapping[str, Any] = {"domain": [0, 1], "nice": False}
"""Scale of a fraction."""

SHARE_AXIS: Mapping[str, Any] = {"format": ".0%"}
"""An axis of fractions, labelled in percent."""

DOUBLING: Mapping[str, Any] = {"type": "log", "base": 2, "nice": False}
"""Scale of numbers that double, such as samples or budgets."""

ENDS = ("low", "high", "question_low", "question_high")
"""Columns of the ends of both intervals of an estimate."""

BANDS = "Bands: 95 % sampling intervals (same questions, asked again)."
"""The sentence of a caption on the areas around lines."""

BUDGET_AXIS: Mapping[str, Any] = {
    "labelExpr": "datum.value < 1024 ? format(datum.value, 'd') : format(datum.value / 1024, '~g') + 'k'"
}
"""An axis of token budgets, which double: 512, 4k, 32k (k = 1024)."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot.

    name: of its files, without suffix. title: a heading. summary: a caption in words, with the main numbers. columns,
    rows: the data, as fractions, not percent. drawing: Vega-Lite's specification of `rows`, whose `field`s are
    `columns`. subject: run and benchmark, for a picture that stands alone.
    """

    name: str
    title: str
    summary: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    drawing: Mapping[str, Any] = field(repr=False)
    subject: str = ""

    def csv(self) -> str:
        """The data as CSV; no text cell starts a formula in a spreadsheet."""
        return csv_text([self.columns, *self.rows])

    def specification(self, *, titled: bool = False) -> dict[str, Any]:
        """The whole Vega-Lite specification.

        titled: with heading, subject and an opaque ground, for a separate file.
        """
        values = [dict(zip(self.columns, map(_cell_text, row), strict=True)) for row in self.rows]
        whole: dict[str, Any] = {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "width": WIDTH,
            "height": HEIGHT,
            "autosize": {"type": "fit-x", "contains": "padding"},
            "padding": _PADDING,
            "data": {"values": values},
            **self.drawing,
            "config": dict(CONFIG),
        }
        if titled:
            whole["title"] = {"text": self.title, "subtitle": label(self.subject).split("\n")}
            whole["background"] = "#ffffff"
            whole["padding"] = 12
        return whole


def label(text: str) -> str:
    """Foreign text as a label: inert, broken into at most three lines, then clipped."""
    lines = textwrap.wrap(visible(text, MAX_LABEL_CHARS), LABEL_CHARS, break_on_hyphens=False)
    return "\n".join(lines)


def series(labels: Sequence[str], *, shapes: bool = False) -> dict[str, Any]:
    """The Vega-Lite encoding of the column `series` by colour, or with `shapes` by shape, in the order of the labels.

    The legend breaks lines where the labels do, and is left out for a single label.
    """
    legend: Any = {"labelExpr": "split(datum.label, '\\n')", "symbolOpacity": 1, "symbolStrokeWidth": 0}
    if any(len(text) > LABEL_CHARS // len(labels) for text in labels):
        legend["columns"] = 1
    shown = [label(text) for text in labels]
    colours = [SERIES[number % len(SERIES)] for number in range(len(shown))]
    marks = [SHAPES[number % len(SHAPES)] for number in range(len(shown))]
    return {
        "field": "series",
        "type": "nominal",
        "sort": None,
        "scale": {"domain": shown, "range": marks if shapes else colours},
        "legend": legend if len(shown) > 1 else None,
    }


def axis(name: str, title: str | None, *, scale: Mapping[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """The encoding of a position by the numbers of column `name`. title: of the axis; settings: of Vega-Lite's axis."""
    return {"field": name, "type": "quantitative", "scale": dict(scale or {}), "axis": {"title": title, **settings}}


def layer(mark: str, look: Mapping[str, Any] | None = None, **encoding: Any) -> dict[str, Any]:
    """A layer of a drawing: Vega-Lite's mark, how it looks, and the encoding of each channel (`x`, `y`, `color` …)."""
    return {"mark": {"type": mark, **(look or {})}, "encoding": encoding}


_PADDING = {"left": 2, "top": 2, "bottom": 2, "right": 8}
"""Free pixels around a plot; the right side has room for the half of the last tick's label beyond the axis."""


def _cell_text(cell: Cell) -> Cell:
    """What a plot shows for a cell of a table: a text as a label, which may be cut; a number as it is."""
    return label(cell) if isinstance(cell, str) else cell
