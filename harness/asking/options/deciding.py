"""The options of verbs that decide between runs, and of experiments on the error of an accuracy.

Differences are in points: one point is one hundredth of an accuracy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.core.errors import UsageError
from harness.core.options import POINTS, SERIES, Option, Options
from harness.core.wording import option

MAX_REPEATS = 10_000
"""Repeats of an experiment; a larger number is a typing mistake."""


class CompareOptions(Options):
    """What the runs are compared with."""

    baseline: Annotated[Path | None, Option("The run that the others are compared with. Default: the first.")] = None


class VerifyOptions(Options):
    """Which published scores a run is held against."""

    model: Annotated[
        str | None, Option("The model's published name, where the run's own is another, or unknown.", chars=1)
    ] = None
    published: Annotated[
        Path | None,
        Option(
            "Compare with the scores of this file (YAML, or JSON of Every Eval Ever) or folder of files. Default: the "
            "scores that are shipped."
        ),
    ] = None


class PlanOptions(Options):
    """What is planned: the difference that is to be found, and what tokens cost."""

    detect: Annotated[float, Option("True difference that is to be found.", above=0, below=100, kind=POINTS)]
    other_samples: Annotated[
        int | None, Option("Samples a question in what this run is compared with.", flag="versus", least=1)
    ] = None
    """None: as many as in this run."""
    price_in: Annotated[float | None, Option("USD per million prompt tokens.", least=0)] = None
    price_out: Annotated[float | None, Option("USD per million completion tokens.", least=0)] = None


class RaceRules(Options):
    """When a race is decided, and how often it is looked at."""

    margin: Annotated[float, Option("Points below which two count as equal.", least=0, most=50, kind=POINTS)] = 0.0
    step: Annotated[int, Option("Rounds between two looks. Default: 2.", least=1, most=1000)] = 2


class Reality(Options):
    """Whether the repeats of an experiment are sampled, or drawn from a run that is there."""

    real: Annotated[bool, Option("Sample every repeat, with seeds of its own; takes the options of `harness run`.")] = (
        False
    )


class RepeatsRules(Reality):
    """How often a run is repeated."""

    runs: Annotated[int, Option("Repeats. Default: 30.", least=2, most=MAX_REPEATS)] = 30


class SizesRules(Reality):
    """Which numbers of samples are tried, and how often each is."""

    n: Annotated[
        tuple[int, ...],
        Option("Numbers of samples, such as 8,16,32 or 8,16,…,256.", metavar="N,N,…", kind=SERIES),
    ]
    runs: Annotated[
        int | None,
        Option(f"Repeats of each number. Default: 200 draws; with {option('real')} one.", least=1, most=MAX_REPEATS),
    ] = None

    def _check(self) -> None:
        """Raise `UsageError` for numbers that show no spread."""
        super()._check()
        if len(set(self.n)) < 2 or min(self.n) < 2:
            raise UsageError(
                "expected at least two numbers of samples, each 2 or more (one sample shows no spread)",
                field="n",
                value=",".join(map(str, self.n)),
            )
