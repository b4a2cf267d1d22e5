"""Draws plots by vl-convert: Vega-Lite in one wheel, without browser, network or fonts of the system.

The reason for this library is in `docs/decisions.md`. It comes with the extra `report`; without it a report has
only tables.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

from harness.core.about import install_line
from harness.core.errors import UsageError
from harness.core.files import write_atomically
from harness.core.inert import csv_file, safe_name
from harness.reports.plots.plot import Plot

EXTRA = "report"
"""The optional dependencies that drawing needs."""

FORMATS = ("svg", "png", "csv")
"""Suffixes of the files that each plot is written to."""

PNG_SCALE = 2.0
"""Pixels of a PNG for each pixel of the plot, horizontally and vertically, so that it is sharp on dense screens."""


def installed() -> bool:
    """Whether plots can be drawn here."""
    return importlib.util.find_spec("vl_convert") is not None


def svg(plot: Plot, *, titled: bool = False) -> str:
    """The picture as SVG: text stays text, and colours are attributes, so that a style sheet can darken them.

    titled: with the plot's title above it.
    """
    import vl_convert

    # Nothing may be fetched, whatever the specification says.
    drawn: str = vl_convert.vegalite_to_svg(plot.specification(titled=titled), allowed_base_urls=[])
    return drawn


def png(plot: Plot) -> bytes:
    """The picture as PNG with its heading, for a document that cannot show SVG."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(plot.specification(titled=True), scale=PNG_SCALE, allowed_base_urls=[])
    return drawn


def files_of(name: str, folder: Path) -> list[Path]:
    """The files of the plot of this name, one for each of `FORMATS`."""
    return [folder / f"{safe_name(name)}.{suffix}" for suffix in FORMATS]


def write_plots(plots: Iterable[Plot], folder: Path) -> list[Path]:
    """Write the files of each plot to `folder`, in all `FORMATS`. Raises `UsageError` where plots cannot be drawn."""
    if not installed():
        raise UsageError(f"plots need the package vl-convert-python: {install_line(EXTRA)}")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for plot in plots:
        contents = (svg(plot, titled=True).encode(), png(plot), csv_file(plot.csv()))
        for path, content in zip(files_of(plot.name, folder), contents, strict=True):
            written.append(path)
            write_atomically(path, content)
    return written
