"""The difference of two runs in which verdicts by hand count in place of the grader's.

`harness compare` and reports take it from here, so that they show the same figures. It is told without p values: those
of a comparison are the grader's, corrected for all comparisons that are shown together.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.nouns import in_percent, in_points
from harness.reports.scored import ScoredBenchmark
from harness.scoring import PairedComparison, compare_runs
from harness.scoring.mean_difference import MeanComparison, mean_comparison
from harness.scoring.uncertainty import points_interval


def paired_by_hand(ours: ScoredBenchmark, first: ScoredBenchmark) -> PairedComparison | None:
    """The comparison in which verdicts by hand count; None if none differs from the grader's, or if a part of a run is
    audited: an estimate for all samples cannot be paired question by question.
    """
    scores = [side.score for side in (ours, first)]
    partial = any(score and score.audited is not None and score.audited.partial for score in scores)
    if partial or not any(score and score.accuracy_overridden is not None for score in scores):
        return None
    return compare_runs(*(side.questions_by_hand or side.questions for side in (ours, first)))


def mean_by_hand(pairs: Sequence[tuple[PairedComparison, PairedComparison | None]]) -> MeanComparison | None:
    """The mean over benchmarks with verdicts by hand; None without such verdicts, or if samples are missing.

    pairs: of each benchmark, the comparison by the grader and the one with verdicts by hand. A benchmark without such
    verdicts counts as it was graded, so that the mean is over the same benchmarks.
    """
    if all(corrected is None for _, corrected in pairs):
        return None
    return mean_comparison([corrected or graded for graded, corrected in pairs])


def interval_by_hand(paired: PairedComparison | MeanComparison) -> str:
    """The interval for the same questions, in points."""
    return points_interval(paired.sampling_interval, at_most=paired.at_most)


def by_hand_in_words(paired: PairedComparison | MeanComparison, run: str, baseline: str) -> str:
    """The difference with verdicts by hand, with its intervals. run, baseline: their names."""
    new = "" if isinstance(paired, MeanComparison) else f", new questions {points_interval(paired.question_interval)}"
    return (
        f"with verdicts by hand: {run} {in_percent(paired.first_accuracy)} %, {baseline} "
        f"{in_percent(paired.second_accuracy)} %: {in_points(paired.difference)} points; same questions "
        f"{interval_by_hand(paired)}{new}"
    )
