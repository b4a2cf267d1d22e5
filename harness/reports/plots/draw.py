"""Writes plots as files: as SVG and CSV always, as PNG where vl-convert is installed (the extra `report`)."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

from harness.core.files import write_atomically
from harness.core.inert import csv_file, safe_name
from harness.reports.plots.plot import Plot

EXTRA = "report"
"""The optional dependencies that make PNG files."""

PNG_SCALE = 2.0
"""Pixels of a PNG for each pixel of the plot, horizontally and vertically, so that it is sharp on dense screens."""


def makes_png() -> bool:
    """Whether plots are also written as PNG, for a document that cannot show SVG."""
    return importlib.util.find_spec("vl_convert") is not None


def as_png(picture: str) -> bytes:
    """An SVG as PNG. Nothing is fetched, and no font of the system is needed."""
    import vl_convert

    drawn: bytes = vl_convert.svg_to_png(picture, scale=PNG_SCALE)
    return drawn


def files_of(name: str, folder: Path) -> list[Path]:
    """The files that the plot of this name may have: SVG, CSV and PNG."""
    return [folder / f"{safe_name(name)}.{suffix}" for suffix in ("svg", "csv", "png")]


def write_plots(plots: Iterable[Plot], folder: Path, *, png: bool = True) -> list[Path]:
    """Write the files of each plot to `folder`; return their paths. png: also as PNG. Raises `StoreError`."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for plot in plots:
        picture = plot.svg(alone=True)
        contents = [picture.encode(), csv_file(plot.csv()), *([as_png(picture)] if png and makes_png() else [])]
        for path, content in zip(files_of(plot.name, folder), contents, strict=False):
            written.append(path)
            write_atomically(path, content)
    return written
