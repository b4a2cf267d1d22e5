"""The options of verbs that decide between runs: differences are in points, one hundredth of an accuracy."""

from __future__ import annotations

from typing import Annotated

from harness.core.options import POINTS, Option, Options


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
