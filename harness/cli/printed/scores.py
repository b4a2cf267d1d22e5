"""Record of a score with its run."""

from __future__ import annotations

from harness.scoring.score import Score


class RunScore(Score, frozen=True, kw_only=True):
    """The score of one benchmark, as in `scores.json`."""

    run: str
    """Name of the run's folder or file."""
