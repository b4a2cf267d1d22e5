"""Records of a score with its run, and of how a race ended."""

from __future__ import annotations

import msgspec

from harness.deciding.race import RaceStanding
from harness.scoring.score import Score


class RunScore(Score, frozen=True, kw_only=True):
    """The score of one benchmark, as in `scores.json`."""

    run: str
    """Name of the run's folder or file."""


class RaceEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a race."""

    baseline: str
    """Name of the baseline."""
    exit_code: int
    """Exit code of the command."""
    decided: bool
    """Whether every candidate has a clear verdict."""
    standings: dict[str, RaceStanding]
    """Each candidate's comparison with the baseline."""
    samples: dict[str, int]
    """Samples per question, by candidate."""
    folders: dict[str, str]
    """Run folder, by candidate."""
