"""Decides for each comparison in a report which run is better. No I/O.

Holm's correction limits the chance that any verdict in a report is a false difference to 5%. It covers only one report:
repeated looks at growing runs give more chances of a false difference.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

import msgspec

from harness.core.number_text import count_points, in_percent
from harness.core.sanitize import visible
from harness.deciding.difference_stats import holm
from harness.deciding.paired_comparison import MeanComparison, PairedComparison, mean_comparison
from harness.scoring.engine_metrics import Change
from harness.scoring.stats import Z_95, Estimate, normal_two_sided
from harness.scoring.table_cells import point_cells

LEVEL = 0.05
"""A p-value below this, after Holm's correction, counts as a difference."""

PairedVerdict = Literal["better", "worse", "no difference seen"]
"""The verdict of a test on a run compared with its baseline; "no difference seen" does not mean equal."""

_Line = Hashable
"""The key of a line of a report, which compares two runs on a benchmark, or their means over several."""

MarginVerdict = Literal["not worse", "worse", "open"]
"""Whether a run is worse than its baseline by a margin or more; "open" if the test decides neither, or if judge errors
could overturn its result.
"""


class MarginDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the run is worse than its baseline by at least a given margin on the same questions."""

    margin: float
    """The margin, as a fraction."""
    verdict: MarginVerdict
    """The verdict: "open" if p is at least 5%, or if judge errors could overturn the result; otherwise, "not worse" if
    the difference is above −margin, or "worse" if it is below.
    """
    p: float
    """Two-sided p-value for the null hypothesis that the true difference is −margin, so each verdict is wrong in at
    most 2.5% of cases. Holm's method corrects it across all margins in a report, separately from the other p-values.
    For a single comparison, p is below 5% if and only if −margin is outside the sampling interval.
    """
    n_margins: int = 1
    """Number of margins whose p-values are corrected together."""


class MeanDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a run with its baseline on the same questions, based on the mean across their shared
    benchmarks.
    """

    compared: MeanComparison
    """Difference between the run and the baseline (run minus baseline)."""
    verdict: PairedVerdict
    """Verdict for the same questions, sampled again."""
    p_sampling: float
    """Corrected p-value for the same questions, sampled again."""
    detectable: float | None
    """Minimum detectable difference after the correction (80% power), as a fraction; None if not even the largest
    possible difference is detectable.
    """
    margin: MarginDecision | None = None
    """Result of the test against the margin; None if no margin was specified."""


def answer(
    run: str, baseline: str, on: str, difference: Estimate, verdict: PairedVerdict, margin: MarginDecision | None
) -> str:
    """The answer to the comparison in one sentence. on: what was compared, such as a benchmark."""
    run, baseline, on = (visible(name, 200) for name in (run, baseline, on))
    points, same, _ = point_cells(difference)
    if margin is not None:
        by = f"{count_points(f'{100 * margin.margin:g}')} or more"
        start = {"open": "cannot say whether ", "worse": "", "not worse": ""}[margin.verdict]
        is_worse = "is not worse" if margin.verdict == "not worse" else "is worse"
        return f"{start}{run} {is_worse} than {baseline} on {on} by {by}: {points} points ({same})"
    if verdict == "no difference seen":
        if (ends := difference.sampling) is not None and ends.low * ends.high > 0:
            same += f"; its corrected p-value is above {LEVEL}"
        return f"no difference seen between {run} and {baseline} on {on}: {points} points ({same})"
    if (ends := difference.sampling) is not None:
        low, high = (ends.low, ends.high) if difference.value > 0 else (-ends.high, -ends.low)
        same = "at most " * difference.at_most + f"{in_percent(low)} to {in_percent(high)}"
    return f"{run} is {verdict} than {baseline} on {on} by {in_percent(abs(difference.value))} points ({same})"


class RunPair(msgspec.Struct, frozen=True, kw_only=True):
    """A run and its baseline on one benchmark."""

    run: str
    """Name of the run."""
    baseline: str
    """Name of the baseline."""
    paired: PairedComparison
    """Difference between the run and the baseline (run minus baseline)."""
    warnings: tuple[str, ...] = ()
    """Warnings to show with the comparison."""
    sides: tuple[str, str] | None = None
    """Names used for the run and the baseline when results are averaged over benchmarks (for example, over sweep cells
    that differ only by benchmark); None if their own names are used.
    """
    imported: bool = False
    """Whether any samples of the run or the baseline come from another tool's file, in which case `harness run` cannot
    add more.
    """
    n_missing: int = 0
    """Number of missing samples that rerunning the `harness run` commands would add. If it is not 0, complete the runs
    before you rely on the verdict.
    """
    tokens: Change | None = None
    """Ratio of tokens per reply; None if unknown."""
    cut: Change | None = None
    """Difference in the fraction of truncated replies; None if unknown."""
    acceptance: Change | None = None
    """Ratio of speculative decoding acceptance lengths; None if unknown."""

    @property
    def of_mean(self) -> tuple[str, str]:
        """The two sides of the mean that the comparison is part of."""
        return self.sides or (self.run, self.baseline)


class Decision(RunPair, frozen=True, kw_only=True):
    """The verdict on a run in comparison with its baseline. Holm's method corrects the p-values jointly across all
    lines of all decisions.
    """

    verdict: PairedVerdict
    """Verdict for the same questions, sampled again."""
    kind_verdict: PairedVerdict | None
    """Verdict for new questions of the same kind; None if unknown."""
    p_sampling: float
    """Corrected p-value for the same questions, sampled again."""
    p_question: float | None
    """Corrected p-value for new questions of the same kind; None if unknown."""
    detectable: float | None
    """Minimum detectable difference after the correction (80% power, same questions), as a fraction; None if not
    even the largest possible difference is detectable.
    """
    mean: MeanDecision | None = None
    """Decision on the mean over all benchmarks shared by this run and its baseline, repeated for each of these
    benchmarks; None if they share only one benchmark, or if an included round is incomplete.
    """
    margin: MarginDecision | None = None
    """Result of the test against the margin; None if no margin was specified."""

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        paired = self.paired
        return answer(self.run, self.baseline, paired.benchmark, paired.difference, self.verdict, self.margin)


def decide(comparisons: Sequence[RunPair], margin: float | None = None) -> list[Decision]:
    """A decision for each comparison, in order. margin: a fraction; None: no margin is tested."""
    means, numbered = _means(comparisons), dict(enumerate(comparisons))
    # One correction for all lines: each mean, and each comparison for the same questions and, if known, for new ones.
    uncorrected: dict[_Line, float] = {("mean", runs): mean.p_sampling for runs, mean in means.items()}
    for number, comparison in numbered.items():
        uncorrected["same", number] = comparison.paired.p_sampling
        if comparison.paired.p_question is not None:
            uncorrected["new", number] = comparison.paired.p_question
    p_values, n_tests = _correct_p_values(uncorrected), len(uncorrected)
    margins: dict[_Line, MarginDecision] = {}
    if margin is not None:
        differences: dict[_Line, Estimate] = {runs: mean.difference for runs, mean in means.items()}
        differences |= {number: comparison.paired.difference for number, comparison in numbered.items()}
        margins = _margins(differences, margin)
    decided_means = {
        runs: MeanDecision(
            compared=mean,
            verdict=_verdict(mean.difference.value, p_values["mean", runs]),
            p_sampling=p_values["mean", runs],
            detectable=mean.smallest(n_tests),
            margin=margins.get(runs),
        )
        for runs, mean in means.items()
    }
    decisions = []
    for number, comparison in numbered.items():
        difference, p_question = comparison.paired.difference.value, p_values.get(("new", number))
        decisions.append(
            Decision(
                **msgspec.structs.asdict(comparison),
                verdict=_verdict(difference, p_values["same", number]),
                kind_verdict=None if p_question is None else _verdict(difference, p_question),
                p_sampling=p_values["same", number],
                p_question=p_question,
                detectable=comparison.paired.smallest(n_tests),
                mean=decided_means.get(comparison.of_mean),
                margin=margins.get(number),
            )
        )
    return decisions


def _correct_p_values(p_values: Mapping[_Line, float]) -> dict[_Line, float]:
    """The p-values, corrected together (Holm)."""
    return dict(zip(p_values, holm([*p_values.values()]), strict=True))


def _margins(differences: Mapping[_Line, Estimate], margin: float) -> dict[_Line, MarginDecision]:
    """The decision on the margin for each of these differences.

    Their p-values are corrected separately from those of the lines, because testing a margin must not weaken the lines'
    verdicts.
    """
    decided = {}
    for line, p in _correct_p_values({line: _p_of_margin(each, margin) for line, each in differences.items()}).items():
        side: MarginVerdict = "not worse" if differences[line].value + margin > 0 else "worse"
        verdict: MarginVerdict = side if p < LEVEL else "open"
        decided[line] = MarginDecision(margin=margin, verdict=verdict, p=p, n_margins=len(differences))
    return decided


def _p_of_margin(difference: Estimate, margin: float) -> float:
    """The two-sided p-value for a true difference of −margin; below 5% if and only if the interval excludes −margin."""
    interval, above = difference.sampling, difference.value + margin
    assert interval is not None
    if not above:
        return 1.0
    # The end of the 95% interval toward −margin is 1.96 standard errors from the difference.
    reach = difference.value - interval.low if above > 0 else interval.high - difference.value
    return normal_two_sided(above * Z_95 / reach)


def _means(comparisons: Sequence[RunPair]) -> dict[tuple[str, str], MeanComparison]:
    """For each pair of sides, the mean over their shared benchmarks; left out if there is only one benchmark, or if
    samples are missing.
    """
    by_runs: dict[tuple[str, str], list[PairedComparison]] = {}
    for comparison in comparisons:
        by_runs.setdefault(comparison.of_mean, []).append(comparison.paired)
    means = {runs: mean_comparison(pairs) for runs, pairs in by_runs.items() if len(pairs) > 1}
    return {runs: mean for runs, mean in means.items() if mean is not None}


def _verdict(difference: float, p: float) -> PairedVerdict:
    """The verdict on a difference with this corrected p-value."""
    if p >= LEVEL:
        return "no difference seen"
    return "better" if difference > 0 else "worse"
