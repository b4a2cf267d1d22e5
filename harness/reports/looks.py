"""Warns of a comparison that may be one of several looks: p and its intervals hold for one look at finished runs."""

from __future__ import annotations

from collections.abc import Mapping

from harness.core.inert import visible
from harness.core.nouns import are, count_noun
from harness.reports.history import History
from harness.reports.scored import ScoredBenchmark, ScoredRun
from harness.reports.series import listed_steps

_GREW: Mapping[str, str] = {
    "raced": "sampled by `harness race`, which stops when a difference appears: this difference is too large on "
    "average, and its p too small. Take the verdict and the interval that the race printed; the same `harness race` "
    "command prints them again",
    "extended": "extended after all samples were complete. If these runs were compared before, too, the 5 % rate of "
    "false differences does not hold: it is the rate of one look. If none was compared, this does no harm. A pilot "
    "announces the size of its run beforehand. To look after every round, use `harness race`",
    "resumed": "continued after a budget had ended a session. If these runs were compared before, too, the 5 % rate of "
    "false differences does not hold: it is the rate of one look. If none was compared, this does no harm. To look "
    "after every round, use `harness race`",
}
"""How a run grew → the warning after its name and "was". A race stopped because of the scores of its runs."""


def owed_samples(run: ScoredRun, benchmark: ScoredBenchmark) -> int:
    """Number of planned samples that the score lacks and that the same `harness run` command adds before a comparison.

    0 for a file, which gets no more samples, and where a budget gave the run its size: no comparison had a part in it.
    """
    score = benchmark.score
    if score is None or benchmark.record.imported or (not score.partial and run.history.sized_by_budget):
        return 0
    return score.n_missing


def look_warnings(
    run: ScoredRun, benchmark: ScoredBenchmark, baseline: ScoredRun, of_baseline: ScoredBenchmark
) -> list[str]:
    """Warnings if one of two compared runs is unfinished, or grew after a time at which it may have been compared.

    benchmark, of_baseline: what is compared of the run and of its baseline.
    """
    sides = {
        f"the run {visible(run.label)}": (run, benchmark),
        f"the baseline {visible(baseline.label)}": (baseline, of_baseline),
    }
    warnings = [
        _missing_samples(which, compared, scored)
        for which, (compared, scored) in sides.items()
        if scored.score is not None and scored.score.n_missing
    ]
    return [*warnings, *growth_warnings({which: compared.history for which, (compared, _) in sides.items()})]


def growth_warnings(histories: Mapping[str, History]) -> list[str]:
    """Warnings of the compared runs that grew after a time at which they may have been compared. histories: by name."""
    warnings = []
    for growth, words in _GREW.items():
        if names := [which for which, history in histories.items() if _growth(history) == growth]:
            listed = " and ".join(names) if len(names) < 3 else listed_steps(names)
            warnings.append(f"{listed} {'was' if len(names) == 1 else 'were'} {words}")
    return warnings


def _growth(history: History) -> str:
    """The key of `_GREW` for this history; empty if the run did not grow."""
    return "raced" if history.grew and history.raced else history.grew


def _missing_samples(which: str, run: ScoredRun, scored: ScoredBenchmark) -> str:
    """The warning of a run that lacks samples. scored: has its score."""
    score = scored.score
    assert score is not None
    if scored.record.imported:
        return (
            f"{which} was made from a file that has no row for {count_noun(score.n_missing, 'sample')}. If only the "
            "others were set, score by a file of the others as the benchmark"
        )
    if not owed_samples(run, scored):
        return (
            f"{which} ended by its budget, after {count_noun(score.rounds, 'round')} of all questions; only these "
            "are compared. A budget that was set beforehand is one look, so the 5 % rate of false differences "
            "holds; it does not if you give the `harness run` command again and compare once more"
        )
    wide = "The intervals allow for any result of missing samples, so they are wide. " if score.partial else ""
    return (
        f"{which} is unfinished: {count_noun(score.n_missing, 'sample')} {are(score.n_missing)} missing. "
        f"{wide}The same `harness run` command again completes the run. "
        "The 5 % rate of false differences holds for one look; repeated looks at a growing run find more. "
        "To look after every round, use `harness race`"
    )
