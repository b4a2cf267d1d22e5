"""What others report of a run's model, as the page of a benchmark shows it: words, and points beside the interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from harness.runs.layout import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePoint:
    """The pass@1 that one source reports.

    printed: in per cent, as the source prints it. accuracy: the same as a fraction. decides: whether the verdict on the
    run rests on it; false for a score that the source only quotes, or measured with another attention.
    """

    source: str
    printed: str
    accuracy: float
    decides: bool


class PublishedBeside(NamedTuple):
    """Published scores beside a run's score; all empty where nothing is published.

    reported_by: every source with its number, in words. verdict: whether the run agrees with them. points: a point for
    each source, those with the nearest settings first.
    """

    reported_by: str = ""
    verdict: str = ""
    points: tuple[SourcePoint, ...] = ()


Published = Callable[[RunFolder, str], PublishedBeside]
"""(run, name of a benchmark) → the published scores beside the run's."""
