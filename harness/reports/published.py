"""A run beside the published scores of its model."""

from __future__ import annotations

from collections.abc import Iterable

from harness.reports.scored import ScoredBenchmark, ScoredRun
from harness.reports.settings import settings_beside
from harness.scoring import PublishedComparison, PublishedScore, compare_published
from harness.scoring.beside import in_order


def beside(
    run: ScoredRun, benchmark: ScoredBenchmark, references: Iterable[PublishedScore]
) -> list[PublishedComparison]:
    """One scored benchmark of a run compared with each published score of it, the nearest first (`in_order`)."""
    assert benchmark.score is not None
    compared = [
        compare_published(
            benchmark.score, benchmark.questions, reference, settings_beside(run, benchmark.name, reference.settings)
        )
        for reference in references
    ]
    return in_order(compared, run.suite.source, benchmark.record.plan.samples)
