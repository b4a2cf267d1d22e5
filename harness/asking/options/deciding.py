"""The options of verbs that decide between runs.

Differences are in points: one point is one hundredth of an accuracy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.core.errors import UsageError
from harness.core.options import POINTS, PRICES, Option, Options


class Margin(Options):
    """The loss that decides whether a run is not worse than another."""

    margin: Annotated[
        float | None,
        Option(
            "Smallest loss that matters: is the new run not worse by so many points or more, on the same questions? "
            "Default: only differences from 0.",
            above=0,
            below=100,
            kind=POINTS,
        ),
    ] = None


class CompareOptions(Margin):
    """The baseline of a comparison, and the loss that matters."""

    baseline: Annotated[
        Path | None,
        Option("The run that all others are compared with. Default: in each benchmark the first run that has it."),
    ] = None


class VerifyOptions(Options):
    """Which published scores a run is compared with."""

    model: Annotated[
        str | None, Option("The model's published name, if the run has another name or none.", chars=1)
    ] = None
    published: Annotated[
        Path | None,
        Option("Compare with the scores of this file (YAML) or folder of files. Default: the scores that are shipped."),
    ] = None


class PlanBasis(Margin):
    """The other run of a planned comparison, its margin, the accuracy of the model, and the prices of tokens."""

    other_samples: Annotated[
        int | None,
        Option(
            "Samples per question of a run that is there already, for `harness compare`. Default: both runs are new, "
            "of one size.",
            flag="versus",
            least=1,
        ),
    ] = None
    """Samples of each question in the other run; None: as many as in this run."""
    published_samples: Annotated[
        int | None,
        Option(
            "Samples per question of a published score: plan one run for `harness verify`. Default: a plan for "
            "`harness compare`.",
            least=1,
        ),
    ] = None
    """Samples of each question behind a published score that the run is compared with; None: with another run."""
    accuracy: Annotated[
        float | None,
        Option(
            "Accuracy of your model in %, if no run shows it: published spreads are scaled to it.",
            above=0,
            below=100,
            kind=POINTS,
        ),
    ] = None
    prices: Annotated[
        str | None,
        Option(
            "USD per million tokens of prompts and replies, such as 0.5,2, or a file of prices by model. "
            "Default: the run's.",
            metavar="IN,OUT|FILE",
            kind=PRICES,
        ),
    ] = None

    @property
    def stored_samples(self) -> int | None:
        """Samples of each question of the other side, a run or a published score, if that is there already."""
        return self.other_samples or self.published_samples

    def _check(self) -> None:
        """Raise `UsageError` for a plan beside a run and a published score at once."""
        super()._check()
        if self.other_samples is not None and self.published_samples is not None:
            raise UsageError(
                "other_samples plans a comparison with another run, published_samples one "
                "with a published score: give one of the two"
            )


class PlanOptions(PlanBasis):
    """The options of a plan: its basis, and the difference to find or the margin to show."""

    detect: Annotated[
        float | None,
        Option(
            "True difference to find. May be left out if a number of samples is given.",
            above=0,
            below=100,
            kind=POINTS,
        ),
    ] = None

    @property
    def points(self) -> float | None:
        """The difference to find, or the margin to show, in points; None if neither is given."""
        return self.margin or self.detect

    def _check(self) -> None:
        """Raise `UsageError` for a margin beside a difference to find, or beside a published score."""
        super()._check()
        if self.margin is None:
            return
        if self.detect is not None:
            raise UsageError(
                "`detect` plans to find a difference, `margin` to show that no run is worse by so "
                "much: give one of the two; a second command plans the other"
            )
        if self.published_samples is not None:
            raise UsageError(
                "`margin` plans for `harness compare`; a published score is compared by `harness verify`, "
                "which takes no margin: leave published_samples out"
            )


class RaceRules(Options):
    """When a race is decided, and how often its standings are checked."""

    margin: Annotated[
        float,
        Option(
            "A race also ends, as equal, once the difference surely lies within so many points; better and worse still "
            "mean that it is not 0. Default: 0 (never equal).",
            least=0,
            most=50,
            kind=POINTS,
        ),
    ] = 0.0
    step: Annotated[
        int, Option("Rounds of samples between two looks at the standings. Default: 2.", least=1, most=1000)
    ] = 2
