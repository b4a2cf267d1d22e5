"""Plots as pictures, by vl-convert: Vega-Lite in one wheel, without a browser, a network or a font of the system.

Why this library: `docs/decisions/plots.md`. It is the extra `report`; without it a report has its tables only.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

from harness.core.about import install_line
from harness.core.errors import UsageError
from harness.core.files import write_atomically
from harness.core.inert import safe_name
from harness.reports.plots.plot import Plot

EXTRA = "report"
"""The optional dependencies that drawing needs."""

FORMATS = ("svg", "png", "csv")
"""Suffixes of the files of one plot."""

PNG_SCALE = 2.0
"""A PNG has this many picture points for each pixel of a plot, so that it is sharp on dense screens and in print."""


def installed() -> bool:
    """Whether plots can be drawn here."""
    return importlib.util.find_spec("vl_convert") is not None


def svg(plot: Plot, *, titled: bool = False) -> str:
    """The picture: text stays text, and colours are attributes, so that a style sheet can darken them."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(plot.specification(titled=titled), allowed_base_urls=[])
    return drawn


def png(plot: Plot) -> bytes:
    """The picture with its heading, for a document that takes no SVG."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(plot.specification(titled=True), scale=PNG_SCALE, allowed_base_urls=[])
    return drawn


def write_plots(plots: Iterable[Plot], folder: Path) -> list[Path]:
    """The files of each plot in `folder`, in all `FORMATS`. Raises `UsageError` where no plot can be drawn."""
    if not installed():
        raise UsageError(f"plots need the package vl-convert-python: {install_line(EXTRA)}")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for plot in plots:
        contents = (svg(plot, titled=True).encode(), png(plot), plot.csv().encode())
        for suffix, content in zip(FORMATS, contents, strict=True):
            written.append(folder / f"{safe_name(plot.name)}.{suffix}")
            write_atomically(written[-1], content)
    return written
