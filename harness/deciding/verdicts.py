"""Says for each comparison of a report which run is better. No I/O.

Holm's correction keeps the chance that any verdict of one report is a false difference at 5 %. It covers one report
only: repeated looks at growing runs give chance more occasions, and only a race (`deciding.race`) corrects for these.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

import msgspec

from harness.deciding.comparison import MeanComparison, PairedComparison, mean_comparison
from harness.deciding.stats_differences import holm
from harness.scoring.audit import JudgeShift
from harness.scoring.engine_figures import Change
from harness.scoring.stats import Z_95, Estimate, Interval, normal_two_sided

LEVEL = 0.05
"""A p value below this, after Holm's correction, is called a difference."""

PairedVerdict = Literal["better", "worse", "no difference seen"]
"""The verdict of a test on a run beside its baseline; "no difference seen" does not mean equal."""

_Line = Hashable
"""The key of a line of a report, which compares two runs on a benchmark, or their means over several."""

MarginVerdict = Literal["not worse", "worse", "open"]
"""Whether a run is worse than its baseline by a margin or more; "open" if the test says neither, or the errors of
judges could turn what it says.
"""


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
    where these are not their own: the cells of a sweep that differ in the benchmark only are one side. judge: the
    errors of the judges of both, as audits show them, by which no "better" or "worse" may turn; unset without. tokens:
    the ratio of the tokens a reply; cut: the difference of the shares of cut replies, a fraction; acceptance: the ratio
    of the acceptance lengths; None where they are unknown.
    """

    run: str
    baseline: str
    paired: PairedComparison
    warnings: tuple[str, ...] = ()
    sides: tuple[str, str] | None = None
    imported: bool = False
    n_owed: int = 0
    judge: JudgeShift | msgspec.UnsetType = msgspec.UNSET
    tokens: Change | None = None
    cut: Change | None = None
    acceptance: Change | None = None

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
    means, numbered = _means(comparisons), dict(enumerate(comparisons))
    judges: dict[_Line, JudgeShift] = {runs: _mean_shift(comparisons, runs) for runs in means}
    judges |= {number: comparison.judge or JudgeShift(0.0, 0.0) for number, comparison in numbered.items()}
    # One correction for all lines: each mean, and of each comparison the same questions and, where known, new ones.
    uncorrected: dict[_Line, float] = {("mean", runs): mean.p_sampling for runs, mean in means.items()}
    for number, comparison in numbered.items():
        uncorrected["same", number] = comparison.paired.p_sampling
        if comparison.paired.p_question is not None:
            uncorrected["new", number] = comparison.paired.p_question
    p_values, n_tests = _corrected(uncorrected), len(uncorrected)
    margins: dict[_Line, MarginDecision] = {}
    if margin is not None:
        differences: dict[_Line, Estimate] = {runs: mean.difference for runs, mean in means.items()}
        differences |= {number: comparison.paired.difference for number, comparison in numbered.items()}
        margins = _margins(differences, judges, margin)
    decided_means = {
        runs: MeanDecision(
            compared=mean,
            verdict=_verdict(mean.difference.value, p_values["mean", runs], judges[runs], mean.difference.sampling),
            p_sampling=p_values["mean", runs],
            detectable=mean.smallest(n_tests),
            margin=margins.get(runs),
        )
        for runs, mean in means.items()
    }
    decisions = []
    for number, comparison in numbered.items():
        paired, p_question = comparison.paired.difference, p_values.get(("new", number))
        decisions.append(
            Decision(
                **msgspec.structs.asdict(comparison),
                verdict=_verdict(paired.value, p_values["same", number], judges[number], paired.sampling),
                kind_verdict=None
                if p_question is None
                else _verdict(paired.value, p_question, judges[number], paired.question),
                p_sampling=p_values["same", number],
                p_question=p_question,
                detectable=comparison.paired.smallest(n_tests),
                mean=decided_means.get(comparison.of_mean),
                margin=margins.get(number),
            )
        )
    return decisions


def _corrected(p_values: Mapping[_Line, float]) -> dict[_Line, float]:
    """The p values, corrected together (Holm)."""
    return dict(zip(p_values, holm([*p_values.values()]), strict=True))


def _margins(
    differences: Mapping[_Line, Estimate], judges: Mapping[_Line, JudgeShift], margin: float
) -> dict[_Line, MarginDecision]:
    """The decision on the margin for each of these differences. judges: the errors of the judges of each.

    Their p values are corrected apart from those of the lines: a margin that is asked about must not weaken the lines'
    verdicts.
    """
    decided = {}
    for line, p in _corrected({line: _p_of_margin(each, margin) for line, each in differences.items()}).items():
        above, interval = differences[line].value + margin, differences[line].sampling
        assert interval is not None
        side: MarginVerdict = "not worse" if above > 0 else "worse"
        beyond = Interval(interval.low + margin, interval.high + margin)
        could_turn = any(judges[line]) and judges[line].could_turn(above, beyond)
        verdict: MarginVerdict = side if p < LEVEL and not could_turn else "open"
        decided[line] = MarginDecision(margin=margin, verdict=verdict, p=p, n_margins=len(differences))
    return decided


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


def _mean_shift(comparisons: Sequence[RunPair], runs: tuple[str, str]) -> JudgeShift:
    """The errors of the judges in the mean of these two sides over the benchmarks; audits are independent."""
    shifts = [pair.judge or JudgeShift(0.0, 0.0) for pair in comparisons if pair.of_mean == runs]
    reach = math.hypot(*(shift.reach for shift in shifts))
    return JudgeShift(math.fsum(shift.shift for shift in shifts) / len(shifts), reach / len(shifts))


def _verdict(difference: float, p: float, judge: JudgeShift, interval: Interval | None) -> PairedVerdict:
    """The verdict on a difference with this corrected p value and this interval, unless the errors of the judges could
    turn it.
    """
    if p >= LEVEL or (any(judge) and interval is not None and judge.could_turn(difference, interval)):
        return "no difference seen"
    return "better" if difference > 0 else "worse"
