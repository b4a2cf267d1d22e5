"""A score with its run."""

from __future__ import annotations

from harness.scoring.score import Score


class RunScore(Score, frozen=True, kw_only=True):
    """One benchmark's score, as `scores.json` holds it. run: the name of its run folder or file."""

    run: str
