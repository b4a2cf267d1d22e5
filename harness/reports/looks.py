"""What restricts a comparison: it may be one of several looks at growing runs, and it leaves things open."""

from __future__ import annotations

from harness.core.inert import visible
from harness.core.nouns import are, count_noun, in_percent
from harness.reports.scored import ScoredBenchmark, ScoredRun
from harness.scoring.deciding import Decision


def owed_samples(benchmark: ScoredBenchmark) -> int:
    """Number of planned samples that the score lacks and that the same `harness run` command adds before a comparison.

    0 for a file, which gets no more samples.
    """
    return 0 if benchmark.score is None or benchmark.record.imported else benchmark.score.n_missing


def look_warnings(
    run: ScoredRun, benchmark: ScoredBenchmark, baseline: ScoredRun, of_baseline: ScoredBenchmark
) -> list[str]:
    """Warnings if one of two compared runs is unfinished, or was sampled by a race, which stops because of its scores.

    benchmark, of_baseline: what is compared of the run and of its baseline.
    """
    sides = {
        f"the run {visible(run.label)}": (run, benchmark),
        f"the baseline {visible(baseline.label)}": (baseline, of_baseline),
    }
    warnings = [
        _missing_samples(which, scored)
        for which, (_, scored) in sides.items()
        if scored.score is not None and scored.score.n_missing
    ]
    raced = [which for which, (compared, _) in sides.items() if compared.history.raced]
    if raced:
        warnings.append(
            f"{' and '.join(raced)} {'was' if len(raced) == 1 else 'were'} sampled by `harness race`, which stops when "
            "a difference appears: this difference is too large on average, and its p too small. Take the verdict and "
            "the interval that the race printed; the same `harness race` command prints them again"
        )
    return warnings


def _missing_samples(which: str, scored: ScoredBenchmark) -> str:
    """The warning of a run that lacks samples. scored: has its score."""
    score = scored.score
    assert score is not None
    if scored.record.imported:
        return (
            f"{which} was made from a file that has no row for {count_noun(score.n_missing, 'sample')}. If only the "
            "others were set, score by a file of the others as the benchmark"
        )
    wide = "The intervals allow for any result of missing samples, so they are wide. " if score.partial else ""
    return (
        f"{which} is unfinished: {count_noun(score.n_missing, 'sample')} {are(score.n_missing)} missing. "
        f"{wide}The same `harness run` command again completes the run. "
        "The 5 % rate of false differences holds for one look; repeated looks at a growing run find more. "
        "To look after every round, use `harness race`"
    )


ANSWERED_ONCE = (
    "the answers were read from a file: if the same questions cannot be asked again, as in a class, only more "
    "questions of this kind tell more"
)
"""This sentence stands in place of the advice on new runs where a side of the comparison was read from a file."""

COMPLETE_FIRST = "complete the run first, by the same `harness run` command"
"""This advice stands in place of all other where a run owes planned samples."""


def open_points(decision: Decision) -> list[str]:
    """The sentences on what a comparison leaves open, for `harness compare` and reports; empty if it leaves nothing."""
    lines, is_open = [], decision.verdict == "no difference seen"
    if is_open:
        missed = "the largest difference that is possible would be missed in more than one comparison of five"
        if (points := decision.detectable) is not None:
            seen = f"a true difference of {in_percent(points)} points is missed in one comparison of five"
            missed = f"{seen}, a smaller one more often"
        lines.append(f"this does not mean equal: {missed}")
    n_missing, effect = decision.paired.n_missing, "the intervals allow for any result of them"
    if not n_missing:
        n_missing, effect = decision.n_owed, "their rounds are left out"
    if n_missing:
        advice = f": {COMPLETE_FIRST}" if decision.n_owed else ""
        return [*lines, f"{count_noun(n_missing, 'sample')} {are(n_missing)} missing, and {effect}{advice}"]
    if is_open or (decision.margin is not None and decision.margin.verdict == "open"):
        lines.append(ANSWERED_ONCE if decision.imported else "`harness plan` says how large two new runs must be")
    return lines
