"""What others report of a run's model, as the page of a benchmark shows it: its words and the verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harness.runs.layout import RunFolder


class PublishedBeside(NamedTuple):
    """Published scores beside a run's score; all empty where nothing is published.

    reported_by: every source with its number, in words. verdict: whether the run agrees with them.
    """

    reported_by: str = ""
    verdict: str = ""


Published = Callable[[RunFolder, str], PublishedBeside]
"""(run, name of a benchmark) → the published scores beside the run's."""
