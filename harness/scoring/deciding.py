"""Says for each comparison of a report which run is better. No I/O.

Holm's correction keeps the chance that any verdict of one report is a false difference at 5 %. It covers one report
only: repeated looks at growing runs give chance more occasions, and only a race (`scoring.race`) corrects for these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from harness.scoring.comparison import PairedComparison
from harness.scoring.mean_difference import MeanComparison, mean_comparison
from harness.scoring.stats import Z_95, Estimate, normal_two_sided
from harness.scoring.stats_differences import holm

LEVEL = 0.05
"""A p value below this, after Holm's correction, is called a difference."""

PairedVerdict = Literal["better", "worse", "no difference seen"]


MarginVerdict = Literal["not worse", "worse", "open"]


class MarginDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the run is worse than its baseline by `margin` (a fraction) or more, on the same questions.

    verdict: "not worse" or "worse" if p is below 5 %, by the side of −margin on which the difference lies. p: of the
    test that the true difference is −margin, two-sided, so each verdict is false in at most 2.5 % of cases. Of a single
    comparison p is below 5 % exactly if −margin lies outside the sampling interval. Holm's method corrects the p values
    of all margins of a report together, apart from those of the lines. n_margins: number of
    margins that are corrected together.
    """

    margin: float
    verdict: MarginVerdict
    p: float
    n_margins: int = 1


class MeanDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One run compared with the baseline by the mean over the benchmarks that both have; compared: the run minus the
    baseline. verdict, p_sampling, detectable, margin: as in `Decision`, for the mean and the same questions.
    """

    compared: MeanComparison
    verdict: PairedVerdict
    p_sampling: float
    detectable: float | None
    margin: MarginDecision | None = None


class RunPair(msgspec.Struct, frozen=True, kw_only=True):
    """A run and its baseline on one benchmark; paired: the run minus the baseline.

    imported: the samples of run or baseline were read from a file,
    so that `harness run` cannot take more of them: what is open is then said without new runs. n_owed: planned samples
    that the scores lack and that the same `harness run` commands add: above 0, advice is to complete the runs first.
    sides: the names under which run and baseline are joined to a mean over benchmarks,
    where these are not their own: the cells of a sweep that differ in the benchmark only are one side.
    """

    run: str
    baseline: str
    paired: PairedComparison
    warnings: tuple[str, ...] = ()
    sides: tuple[str, str] | None = None
    imported: bool = False
    n_owed: int = 0

    @property
    def of_mean(self) -> tuple[str, str]:
        """The two sides of the mean that the comparison is part of."""
        return self.sides or (self.run, self.baseline)


class Decision(RunPair, frozen=True, kw_only=True):
    """What the comparison of a run with its baseline says.

    verdict: for the same questions, asked again. kind_verdict: for other questions of this kind, None where
    unknown. p values are corrected by Holm over all lines of all decisions. detectable: the smallest true
    difference (same questions) that is found in 80 % of repetitions after this correction; None if none that is
    possible is found. mean: the
    decision on the mean over all benchmarks of this run with this baseline, the same in each of their decisions;
    None for a single benchmark, and if counted rounds lack samples. margin: None unless a margin is given.
    """

    verdict: PairedVerdict
    kind_verdict: PairedVerdict | None
    p_sampling: float
    p_question: float | None
    detectable: float | None
    mean: MeanDecision | None = None
    margin: MarginDecision | None = None


def decide(comparisons: Sequence[RunPair], margin: float | None = None) -> list[Decision]:
    """A decision for each comparison, in order. margin: a fraction; None decides none."""
    means = _means(comparisons)
    margins, margins_of_means = _margins([comparison.paired for comparison in comparisons], [*means.values()], margin)
    # One list for the correction: a p value for each mean, then one or two for each comparison.
    both = [p for comparison in comparisons for p in (comparison.paired.p_sampling, comparison.paired.p_question)]
    adjusted = holm([*(mean.p_sampling for mean in means.values()), *(p for p in both if p is not None)])
    n_tests = len(adjusted)
    decided_means = {
        pair: MeanDecision(
            compared=mean,
            verdict=_verdict(mean.difference.value, p),
            p_sampling=p,
            detectable=mean.smallest(n_tests),
            margin=of_margin,
        )
        for (pair, mean), p, of_margin in zip(means.items(), adjusted[: len(means)], margins_of_means, strict=True)
    }
    p_values = iter(adjusted[len(means) :])
    decisions = []
    for comparison, of_margin in zip(comparisons, margins, strict=True):
        p_sampling = next(p_values)
        p_question = None if comparison.paired.p_question is None else next(p_values)
        decisions.append(
            Decision(
                **msgspec.structs.asdict(comparison),
                verdict=_verdict(comparison.paired.difference.value, p_sampling),
                kind_verdict=None if p_question is None else _verdict(comparison.paired.difference.value, p_question),
                p_sampling=p_sampling,
                p_question=p_question,
                detectable=comparison.paired.smallest(n_tests),
                mean=decided_means.get(comparison.of_mean),
                margin=of_margin,
            )
        )
    return decisions


def _margins(
    pairs: Sequence[PairedComparison], means: Sequence[MeanComparison], margin: float | None
) -> tuple[list[MarginDecision | None], list[MarginDecision | None]]:
    """The decisions on the margin, of the pairs and of their means; None each without a margin."""
    if margin is None:
        return [None] * len(pairs), [None] * len(means)
    compared = [*(pair.difference for pair in pairs), *(mean.difference for mean in means)]
    # Apart from the lines' p values: a margin that is asked about must not weaken their verdicts.
    adjusted = holm([_p_of_margin(difference, margin) for difference in compared])
    decided: list[MarginDecision | None] = []
    for difference, p in zip(compared, adjusted, strict=True):
        side: MarginVerdict = "not worse" if difference.value > -margin else "worse"
        verdict = side if p < LEVEL else "open"
        decided.append(MarginDecision(margin=margin, verdict=verdict, p=p, n_margins=len(compared)))
    return decided[: len(pairs)], decided[len(pairs) :]


def _p_of_margin(difference: Estimate, margin: float) -> float:
    """The two-sided p value of the true difference −margin; below 5 % exactly if the interval excludes it."""
    interval, above = difference.sampling, difference.value + margin
    assert interval is not None
    if not above:
        return 1.0
    # The end of the 95 % interval towards −margin lies 1.96 standard errors from the difference.
    reach = difference.value - interval.low if above > 0 else interval.high - difference.value
    return normal_two_sided(above * Z_95 / reach)


def _means(comparisons: Sequence[RunPair]) -> dict[tuple[str, str], MeanComparison]:
    """By both sides, the mean over the benchmarks that both have; only if these are several, and without missing
    samples.
    """
    by_runs: dict[tuple[str, str], list[PairedComparison]] = {}
    for comparison in comparisons:
        by_runs.setdefault(comparison.of_mean, []).append(comparison.paired)
    means = {runs: mean_comparison(pairs) for runs, pairs in by_runs.items() if len(pairs) > 1}
    return {runs: mean for runs, mean in means.items() if mean is not None}


def _verdict(difference: float, p: float) -> PairedVerdict:
    if p >= LEVEL:
        return "no difference seen"
    return "better" if difference > 0 else "worse"
