"""`harness score --follow`: grades a growing run from another process, until the run has ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from harness.core.errors import StoreError
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.presets.grading import GradingOptions
    from harness.runs.layout import RunFolder
    from harness.scoring import Score

PAUSE_S = 5.0
"""Smallest number of seconds between two looks at what is stored."""

LEISURE = 10.0
"""The pause between two looks is this many times as long as the last look, so that the run keeps the processor."""


def follow(folder: RunFolder, grading: GradingOptions, on_graded: Callable[[str, int], None]) -> list[Score]:
    """Score repeatedly while the run goes on, and once more when it has ended. Returns the last scores.

    Each look grades only what is new. The run's own display shows these scores. Raises `StoreError`.
    """
    from harness.cli.status import look
    from harness.scoring import pipeline

    printed = ""
    while True:
        going = look(folder).state != "ended"  # Checked before the look, so that nothing is stored after the last look.
        began = time.monotonic()
        try:
            scores = pipeline.score_run(folder, grading, on_graded)
        except StoreError:
            if not going:
                raise
            scores = []  # The run has only begun.
        if not going:
            return scores
        grading = grading.but(fresh=False)
        line = " · ".join(_words(score) for score in scores if score.accuracy is not None)
        if line and line != printed:
            click.echo(line, err=True)
            printed = line
        time.sleep(max(PAUSE_S, LEISURE * (time.monotonic() - began)))


def _words(score: Score) -> str:
    """One line on a score, as the progress display words it."""
    from harness.showing.lines import score_in_words
    from harness.showing.running_score import RunningScore

    interval = score.sampling_interval
    running = RunningScore(
        accuracy=score.accuracy or 0.0,
        n_samples=score.n_samples,
        sampling_interval=None if interval is None else (interval.low, interval.high),
    )
    return f"{visible(score.benchmark, 60)} {score_in_words(running)}"
