"""What to conclude from comparisons: verdicts with Holm's correction over all that is said, and what would settle them.

Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from harness.scoring.comparison import PairedComparison, PublishedComparison
from harness.scoring.differences import holm, smallest_difference
from harness.scoring.distributions import power_factor

LEVEL = 0.05
"""p values below it, after Holm's correction, are called a difference."""

Verdict = Literal["better", "worse", "no difference seen"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One run beside the baseline on one benchmark; paired: the run minus the baseline.

    verdict: on these questions, run again; kind_verdict: on questions of the kind, None where it cannot be told. p
    values are Holm's over all lines of all decisions. detectable: the smallest true difference (these questions) which
    is found in 80 % of repetitions, for all this correction. samples: of each question, the fewer of both runs.
    settling: samples a question of both runs with which a true difference of this size would be; None where no number
    of them would do.
    """

    run: str
    baseline: str
    paired: PairedComparison
    verdict: Verdict
    kind_verdict: Verdict | None
    p_sampling: float
    p_question: float | None
    detectable: float
    samples: int
    settling: int | None
    warnings: tuple[str, ...] = ()

    def is_worse_by(self, margin: float) -> bool:
        """Whether the run is found worse, and by at least `margin`, a fraction: what a gate refuses."""
        return self.verdict == "worse" and self.paired.difference <= -margin

    def could_see(self, margin: float) -> bool:
        """Whether a true difference of `margin` would have been found in 80 % of repetitions."""
        return self.detectable <= margin


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison before its decision; see `Decision`."""

    run: str
    baseline: str
    paired: PairedComparison
    samples: int
    warnings: tuple[str, ...] = ()


def decide(comparisons: Sequence[Compared]) -> list[Decision]:
    """One decision each, in order."""
    listed = [p for one in comparisons for p in (one.paired.p_sampling, one.paired.p_question) if p is not None]
    adjusted = iter(holm(listed))
    decisions = []
    for one in comparisons:
        p_sampling = next(adjusted)
        p_question = None if one.paired.p_question is None else next(adjusted)
        decisions.append(
            Decision(
                run=one.run,
                baseline=one.baseline,
                paired=one.paired,
                verdict=_verdict(one.paired.difference, p_sampling),
                kind_verdict=None if p_question is None else _verdict(one.paired.difference, p_question),
                p_sampling=p_sampling,
                p_question=p_question,
                detectable=smallest_difference(one.paired.sampling_error, len(listed)),
                samples=one.samples,
                settling=_settling(one.paired, len(listed)),
                warnings=one.warnings,
            )
        )
    return decisions


Standing = Literal["compatible", "not compatible", "cannot say"]


SHARP = 2.0
"""A comparison that could not have seen this many times the smallest difference that another could is too blunt to
acquit: beside one sample a question nearly every run is compatible."""


def standing(comparisons: Sequence[PublishedComparison]) -> Standing:
    """How a run stands to what is published of its model and benchmark: compatible if it is with one of the scores.

    Scores whose stated settings are all ours count alone, where there are such: the others differ for known reasons.
    Of these pass@1 counts alone, where it is there: the other metrics are made of the same samples, and where nearly
    every question is solved in k of them, pass@k tells hardly any two models apart. Of these only the sharp ones count.
    """
    decided = [one for one in comparisons if one.verdict != "cannot say" and one.detectable is not None]
    listed = [one for one in decided if not one.differing] or decided
    listed = [one for one in listed if one.published.metric == "pass@1"] or listed
    if not listed:
        return "cannot say"
    finest = min(one.detectable or 0.0 for one in listed)
    sharp = [one for one in listed if (one.detectable or 0.0) <= SHARP * finest]
    return "compatible" if any(one.verdict == "compatible" for one in sharp) else "not compatible"


def _verdict(difference: float, p: float) -> Verdict:
    if p >= LEVEL:
        return "no difference seen"
    return "better" if difference > 0 else "worse"


def _settling(paired: PairedComparison, n_tests: int) -> int | None:
    if not paired.difference or not paired.single_error:
        return None
    return math.ceil((power_factor(n_tests) * paired.single_error / paired.difference) ** 2)
