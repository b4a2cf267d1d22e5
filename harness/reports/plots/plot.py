"""A plot as a value: rows of data, a caption that describes them, and marks in the units of the data, drawn as SVG.

Plots are drawn without a plotting package (docs/decisions.md). `write_plots` writes SVG and CSV files. Every picture is
`WIDTH` pixels wide, so its text keeps its size on a phone, in a grid on a screen, and in print. Text remains text,
inert and escaped. Colors are attributes, which a style sheet replaces in dark mode (`DARK_STYLE`).
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from markupsafe import escape

from harness.core.files import write_atomically
from harness.core.sanitize import csv_file, csv_text, safe_name, visible

Cell = str | float | int | None
"""A value of a plot's data."""

Point = tuple[float, float]
"""A position (x, y): for a mark, in the units of its axes; for a picture, in pixels from its upper left corner."""

Place = Callable[[Point], Point]
"""Converts a position in the units of the axes into pixels."""

WIDTH = 384
"""Width of a picture in pixels, including axes."""

HEIGHT = 200
"""Height of the plot area in pixels, unless it depends on the number of rows."""

FONT_PX, LINE_PX, CHAR_PX = 11, 15, 7
"""Font size, line height, and width reserved for a character, in pixels."""

LABEL_CHARS = 52
"""Maximum number of characters in a line of a label; longer labels are broken into several lines."""

MAX_LABEL_CHARS = 3 * LABEL_CHARS
"""Maximum length of a label in characters; longer labels are truncated."""

INK, SOFT, AXIS, GRID, GROUND = "#1f2328", "#59636e", "#8c959f", "#e3e7eb", "#ffffff"
"""Colors of text, secondary text, axis lines, grid lines, and the background of a standalone picture."""

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a07800", "#3f9bd8")
"""Colors of runs or curves, repeated after the last. Color-blind readers can distinguish them (Okabe and Ito 2008)."""

DARK = ("#e6e9ed", "#9fa9b4", "#6b7580", "#2d343c", "#14171b")
DARK_SERIES = ("#4ea3e0", "#f0824a", "#35c199", "#e09cc3", "#cfa634", "#8cc8f2")
"""The counterpart of each color on a dark background."""

_TWINS = [*zip((INK, SOFT, AXIS, GRID, GROUND, *SERIES), (*DARK, *DARK_SERIES), strict=True)]
_RULES = [f'[{kind}="{light}"]{{{kind}:{dark}}}' for light, dark in _TWINS for kind in ("fill", "stroke")]
DARK_STYLE = f"@media screen and (prefers-color-scheme:dark){{{''.join(_RULES)}}}"
"""The style sheet that switches the marks of a picture to their dark colors."""

SHAPES = (
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "M-3.1-3.1h6.2v6.2h-6.2z",
    "M0-4.2 4 3h-8z",
    "M0-4.4 4.4 0 0 4.4-4.4 0z",
    "M-1.3-4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z",
    "M0 4.2-4-3h8z",
)
"""Marks that correspond to `SERIES`, for reading and printing without color: the outline of each around (0, 0)."""

TICK = "M-1-9h2v18h-2z"
"""The outline of a tick across a line, used for published scores."""

MAX_SHARE_STEPS = 6
"""Largest number of steps spanned by the values on an axis of fractions, unless a step is 20%."""

FIFTHS = tuple((fifth / 5, f"{20 * fifth}%") for fifth in range(6))
"""Tick values of an axis of fractions, with labels in percent."""

BANDS = "Bands: 95% sampling intervals (same questions, sampled again)."
"""The caption's sentence about the areas around lines."""

ENDS = ("low", "high", "question_low", "question_high")
"""Columns for the ends of both intervals of an estimate."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`, where `high` is at the right or at the top.

    ticks: values with their labels. grid: whether each tick has a grid line. doubling: whether equal distances
    represent equal ratios.
    """

    low: float
    high: float
    ticks: Sequence[tuple[float, str]] = ()
    title: str = ""
    grid: bool = False
    doubling: bool = False

    def share(self, value: float) -> float:
        """The position of a value between the ends, from 0 to 1; values outside are clipped to the nearer end."""
        scale: Callable[[float], float] = math.log2 if self.doubling else float
        low, high = scale(self.low), scale(self.high)
        return min(1.0, max(0.0, (scale(value) - low) / (high - low))) if high != low else 0.5


def share_axis(values: Iterable[float | None], title: str = "") -> Axis:
    """An axis of fractions between the round percentages that enclose the values; without values, from 0 to 1."""
    known = [value for value in values if value is not None] or [0.0, 1.0]
    low, high = min(known), max(known)
    steps = next(steps for steps in (100, 50, 20, 10, 5) if (high - low) * steps <= MAX_SHARE_STEPS or steps == 5)
    first = max(0, min(math.floor(low * steps + 1e-9), steps - 1))
    last = min(steps, max(math.ceil(high * steps - 1e-9), first + 1))
    ticks = [(number / steps, f"{100 * number // steps}%") for number in range(first, last + 1)]
    return Axis(first / steps, last / steps, ticks, title, grid=True)


def zero_axis(high: float, title: str = "", at_most: int = 6) -> Axis:
    """An axis from 0 to `high` with round ticks, at most so many."""
    return Axis(0, high, [(value, f"{value:,g}") for value in round_values(0, high, at_most)], title, grid=True)


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line through points, or the area that they enclose. dash: lengths of dashes and gaps in pixels."""

    points: Sequence[Point]
    color: str = SERIES[0]
    width: float = 2
    opacity: float = 1
    dash: str = "none"
    filled: bool = False

    def svg(self, place: Place) -> str:
        """The line as an SVG element."""
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in map(place, self.points))
        if self.filled:
            return f'<path d="{path}z" fill="{self.color}" fill-opacity="{self.opacity:g}"/>'
        look = f'stroke-width="{self.width:g}" stroke-opacity="{self.opacity:g}" stroke-dasharray="{self.dash}"'
        return f'<path d="{path}" fill="none" stroke="{self.color}" {look}/>'


@dataclass(frozen=True, slots=True)
class Dot:
    """A mark at a point. shape: one of `SHAPES`, or `TICK`. size: 1 is 7 pixels wide. title: shown when the mouse
    hovers over the mark.
    """

    at: Point
    color: str = SERIES[0]
    shape: str = SHAPES[0]
    size: float = 1
    hollow: bool = False
    opacity: float = 1
    title: str = ""

    def svg(self, place: Place) -> str:
        """The mark as an SVG element."""
        x, y = place(self.at)
        # A hollow dot hides the lines behind it.
        fill, stroke = (GROUND, f' stroke="{self.color}" stroke-width="1.5"') if self.hollow else (self.color, "")
        look = f'fill="{fill}" fill-opacity="{self.opacity:g}"{stroke}'
        title = f"<title>{escape(visible(self.title, 300))}</title>" if self.title else ""
        where = f'transform="translate({x:.1f} {y:.1f}) scale({self.size:.2g})"'
        return f'<path d="{self.shape}" {where} {look}>{title}</path>'


@dataclass(frozen=True, slots=True)
class Words:
    """The lines of a label; the first line starts at the point. end: the lines end there instead."""

    at: Point
    text: str
    color: str = SOFT
    end: bool = False

    def svg(self, place: Place) -> str:
        """The mark as an SVG element."""
        x, y = place(self.at)
        return _text(x, y, self.text, self.color, "end" if self.end else "start")


Mark = Stroke | Dot | Words
"""An element drawn in a plot."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot.

    name: name of its files, without suffix. title: a heading. summary: a caption with the main numbers. columns, rows:
    the data, as fractions, not percentages. marks: drawn in this order. legend: the meaning of each color and shape; a
    single entry is not shown. height: height of the plot area in pixels. subject: run and benchmark, for a standalone
    picture.
    """

    name: str
    title: str
    summary: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    x: Axis = field(repr=False)
    y: Axis = field(repr=False)
    marks: Sequence[Mark] = field(repr=False)
    legend: Sequence[tuple[str, Dot]] = field(default=(), repr=False)
    height: float = HEIGHT
    subject: str = ""

    def csv(self) -> str:
        """The data as CSV. No text cell starts a formula in a spreadsheet."""
        return csv_text([self.columns, *self.rows])

    def svg(self, *, alone: bool = False) -> str:
        """The plot as SVG. alone: add heading, subject, background and dark colors, for a separate file."""
        parts, top = [], 4.0
        for text, font, color in ((self.title, 13, INK), (self.subject, FONT_PX, SOFT)) if alone else ():
            if lines := _n_lines(label(text)):
                parts.append(_text(2, top + font, label(text), color, size=font))
                top += 4 + LINE_PX * lines
        legend, top = _legend(self.legend if len(self.legend) > 1 else (), top)
        if self.y.title:
            parts.append(_text(2, top + FONT_PX, of_y := label(self.y.title), SOFT))
            top += LINE_PX * _n_lines(of_y)
        left = 12 + CHAR_PX * max((len(text) for _, text in self.y.ticks), default=-1)
        right, top = WIDTH - 10, top + 5
        bottom = top + self.height

        def place(point: Point) -> Point:
            return left + (right - left) * self.x.share(point[0]), bottom - self.height * self.y.share(point[1])

        parts += [*legend, *self._scales(place, left, right, bottom), *(mark.svg(place) for mark in self.marks)]
        height = bottom + 6 + LINE_PX * (bool(self.x.ticks) + _n_lines(label(self.x.title)))
        size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
        if alone:
            size += ' xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif"'
            parts.insert(0, f'<style>{DARK_STYLE}</style><rect width="100%" height="100%" fill="{GROUND}"/>')
        return f"<svg {size}>{''.join(parts)}</svg>"

    def _scales(self, place: Place, left: float, right: float, bottom: float) -> Iterator[str]:
        """The lines, ticks, labels and titles of both axes; a label that would touch the previous one is left out."""
        for value, text in self.y.ticks:
            _, at = place((self.x.low, value))
            yield _straight(left, at, right, at, GRID) if self.y.grid else ""
            yield _text(left - 6, at + 4, text, SOFT, "end")
        yield _straight(left, bottom, right, bottom, AXIS)
        free = -math.inf
        for value, text in self.x.ticks:
            at, _ = place((value, self.y.low))
            half = CHAR_PX * len(text) / 2 + 2
            middle = min(max(at, half), WIDTH - half)
            if middle - half < free:
                continue
            free = middle + half + 6
            yield _straight(at, bottom - self.height, at, bottom, GRID) if self.x.grid else ""
            yield _straight(at, bottom, at, bottom + 4, AXIS) + _text(middle, bottom + LINE_PX, text, SOFT, "middle")
        below = bottom + LINE_PX * (2 if self.x.ticks else 1)
        yield _text((left + right) / 2, below, label(self.x.title), SOFT, "middle")


def label(text: str, width: int = LABEL_CHARS) -> str:
    """Untrusted text as a label: inert, truncated to `MAX_LABEL_CHARS`, in lines of at most `width` characters."""
    return "\n".join(textwrap.wrap(visible(text, MAX_LABEL_CHARS), width, break_on_hyphens=False))


def key_of(number: int) -> Dot:
    """The color and shape of the series with this index."""
    return Dot((0, 0), SERIES[number % len(SERIES)], SHAPES[number % len(SHAPES)])


def lines_plot(
    name: str,
    title: str,
    summary: str,
    columns: tuple[str, ...],
    rows: Sequence[tuple[Cell, ...]],
    x: Axis,
    y: Axis | None = None,
    marks: Sequence[Mark] = (),
) -> Plot:
    """A plot of lines with dots over bands, with one color and shape per series, drawn over `marks`.

    rows: series, x, value, low, high, and further cells that are not drawn. A row without a value makes a gap; a single
    dot between two gaps has its interval drawn as a line. y: by default, an axis of the fractions in `rows`.
    """
    by_series: dict[str, list[list[Sequence[Cell]]]] = {}
    for row in rows:
        stretches = by_series.setdefault(str(row[0]), [[]])
        stretches[-1].append(row) if row[2] is not None else stretches.append([])
    drawn, dots = [*marks], list[Mark]()
    legend = [(series, key_of(number)) for number, series in enumerate(by_series)]
    for (_, key), stretches in zip(legend, by_series.values(), strict=True):
        for stretch in filter(None, stretches):
            values, low, high = (
                [(_number(row[1]), _number(row[column])) for row in stretch if row[column] is not None]
                for column in (2, 3, 4)
            )
            if len(stretch) == 1:
                drawn += [Stroke([*low, *high], key.color, 1.8)] if low and high else []
            else:
                drawn += [Stroke([*low, *reversed(high)], key.color, opacity=0.16, filled=True)] if low else []
                drawn += [Stroke(values, key.color)]
            dots += [replace(key, at=point) for point in values]
    up = y or share_axis(_number(cell) for row in rows for cell in row[2:5] if cell is not None)
    return Plot(name, title, summary, columns, tuple(rows), x, up, [*drawn, *dots], legend)


def round_values(low: float, high: float, at_most: int = 6) -> list[float]:
    """Round numbers from `low` to `high`, spaced by 1, 2 or 5 times a power of ten."""
    span = max(high - low, 1e-9)
    power = 10.0 ** math.floor(math.log10(span / at_most))
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if span / (factor * power) <= at_most)
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _number(cell: Cell) -> float:
    assert isinstance(cell, int | float)
    return cell


def _straight(x: float, y: float, x_end: float, y_end: float, color: str) -> str:
    """A thin line between two points, in pixels."""
    return f'<path d="M{x:.1f} {y:.1f}L{x_end:.1f} {y_end:.1f}" stroke="{color}"/>'


def _text(x: float, y: float, text: str, color: str, anchor: str = "start", size: int = FONT_PX) -> str:
    """Lines of text, placed at the baseline of the first line; empty if the text is empty."""
    look = f'x="{x:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}"'
    lines = text.split("\n") if text else ()
    return "".join(f'<text y="{y + n * LINE_PX:.1f}" {look}>{escape(line)}</text>' for n, line in enumerate(lines))


def _n_lines(text: str) -> int:
    return text.count("\n") + bool(text)


def _legend(entries: Sequence[tuple[str, Dot]], top: float) -> tuple[list[str], float]:
    """The legend below `top`, in as many rows as needed, and the y coordinate of its lower end, in pixels."""
    parts, x, y = [], 2.0, top
    for name, key in entries:
        lines = label(name).split("\n")
        width = 26 + CHAR_PX * max(map(len, lines))
        if x > 2 and (x + width > WIDTH or len(lines) > 1):
            x, y = 2.0, y + LINE_PX
        dot = replace(key, at=(x + 5, y + 7)).svg(lambda point: point)
        parts.append(dot + _text(x + 14, y + FONT_PX, "\n".join(lines), INK))
        x, y = (x + width, y) if len(lines) == 1 else (WIDTH, y + LINE_PX * (len(lines) - 1))
    return parts, y + LINE_PX + 4 if entries else y


# ---- files


def files_of(name: str, folder: Path) -> list[Path]:
    """The files of the plot with this name: SVG and CSV."""
    return [folder / f"{safe_name(name)}.{suffix}" for suffix in ("svg", "csv")]


def write_plots(plots: Iterable[Plot], folder: Path) -> list[Path]:
    """Write the files of each plot to `folder`; return their paths. Raises `StoreError`."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for plot in plots:
        contents = (plot.svg(alone=True).encode(), csv_file(plot.csv()))
        for path, content in zip(files_of(plot.name, folder), contents, strict=True):
            written.append(path)
            write_atomically(path, content)
    return written
