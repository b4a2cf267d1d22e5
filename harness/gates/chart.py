"""The control chart of a gate: the nights of one benchmark as points with intervals, its reference and its limit.

An SVG of its own, without a package; its colours are those of the report's page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from harness.core.inert import visible
from harness.core.nouns import in_percent
from harness.gates.decide import Checked, Gated, nights_of
from harness.scoring.stats import Z_95

MAX_NIGHTS = 90
"""Largest number of nights that a chart shows: the latest."""

WIDTH, HEIGHT, LEFT, BOTTOM = 560, 240, 44, 24
"""Size of the picture, and the room for the labels of its axes, in pixels."""

INK, AXIS, RED = "#59636e", "#8c959f", "#d55e00"

COLOURS = {"pass": "#0072b2", "fail": RED, "waived": "#a07800"}
"""State of a night → the colour of its point; other states have that of the axis."""

CAPTION = (
    "Points: runs with 95 % intervals of sampling and deviation; filled: taught the deviation of runs, hollow: not. "
    "Blue passed, red failed, ochre was waived, grey is undecided. Line: the reference; dashed: with the loss."
)


def chart(benchmark: str, entries: Sequence[Gated]) -> dict[str, Any]:
    """The figure of a benchmark for the page; `picture` is empty if no night has an accuracy."""
    nights = [(entry, check) for entry in entries for check in entry.checks if check.benchmark == benchmark]
    shown = [(entry, check) for entry, check in nights if check.accuracy is not None][-MAX_NIGHTS:]
    key = shown[-1][1].key if shown else ""
    taught = [id(check) for check in nights_of(benchmark, key, entries) if not check.odd]
    ends = [end for _, check in shown for end in (*_interval(check), check.reference, check.reference - check.loss)]
    low, high = min(ends, default=0.0), max(ends, default=1.0)

    def x(number: float) -> float:
        return LEFT + (WIDTH - LEFT - 8) * (number + 0.5) / len(shown)

    def y(value: float) -> float:
        return 8 + (HEIGHT - BOTTOM - 16) * (high - value) / max(high - low, 1e-9)

    parts = [
        f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end" {_TEXT}>{in_percent(tick)}</text>'
        for tick in (low, (low + high) / 2, high)
    ]
    for number, (entry, check) in enumerate(shown):
        for value, stroke in ((check.reference, f'"{AXIS}"'), (check.reference - check.loss, f'"{RED}" {_DASHED}')):
            parts.append(_line(x(number - 0.5), y(value), x(number + 0.5), y(value), stroke))
        colour = COLOURS.get(check.state, AXIS)
        least, most = _interval(check)
        parts.append(_line(x(number), y(least), x(number), y(most), f'"{colour}"'))
        fill = colour if id(check) in taught else "none"
        told = escape(visible(f"{entry.sampled} {check.state}: {check.why}", 300))
        parts.append(
            f'<circle cx="{x(number):.1f}" cy="{y(check.accuracy or 0.0):.1f}" r="3.5" fill="{fill}" '
            f'stroke="{colour}"><title>{told}</title></circle>'
        )
    for number, anchor in ((0, "start"), (len(shown) - 1, "end")) if shown else ():
        day = escape(visible(shown[number][0].sampled[:10], 10))
        parts.append(f'<text x="{x(number):.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}" {_TEXT}>{day}</text>')
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>' if shown else ""
    return {"title": visible(benchmark, 80), "summary": CAPTION, "picture": Markup(svg)}  # noqa: S704 - escaped above


_TEXT = f'font-size="11" fill="{INK}"'
_DASHED = 'stroke-dasharray="4 3"'


def _line(x: float, y: float, x_end: float, y_end: float, stroke: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x_end:.1f}" y2="{y_end:.1f}" stroke={stroke}/>'


def _interval(check: Checked) -> tuple[float, float]:
    """The accuracy of a night, less and plus the 95 % reach of sampling and deviation."""
    reach = Z_95 * math.sqrt(check.variance + check.deviation**2)
    return max(0.0, (check.accuracy or 0.0) - reach), min(1.0, (check.accuracy or 0.0) + reach)
