"""A score with its run, and how a race ended."""

from __future__ import annotations

import msgspec

from harness.deciding.race import RaceStanding
from harness.scoring.score import Score


class RunScore(Score, frozen=True, kw_only=True):
    """One benchmark's score, as `scores.json` holds it. run: the name of its run folder or file."""

    run: str


class RaceEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a race ended.

    decided: every standing is clear. standings: by candidate, without the baseline. samples: per question, by
    candidate. folders: of the runs, by candidate.
    """

    baseline: str
    exit_code: int
    decided: bool
    standings: dict[str, RaceStanding]
    samples: dict[str, int]
    folders: dict[str, str]
