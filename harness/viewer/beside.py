"""What others report of a run's model, as the page of a benchmark shows it: words, and points beside the interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from harness.runs.layout import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePoint:
    """The pass@1 that one source reports. printed: in per cent, as the source prints it; accuracy: a fraction.

    decides: false for a score that decides nothing: quoted, or measured with another attention.
    """

    source: str
    printed: str
    accuracy: float
    decides: bool


class PublishedBeside(NamedTuple):
    """What stands beside one score: every source with its number, the verdict, and a point for each source, the nearest
    settings first; all empty where nothing is published."""

    # A named tuple: a run without sources is `PublishedBeside()`, and its three parts are read apart.
    reported_by: str = ""
    verdict: str = ""
    points: tuple[SourcePoint, ...] = ()


Published = Callable[[RunFolder, str], PublishedBeside]
"""(run, benchmark) → what stands beside its score."""
