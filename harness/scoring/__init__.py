"""Aggregates over grades: accuracy with its two errors, pass@k, maj@k, comparison.

Formulas are in `docs/method/statistics.md`. Enter by `score_benchmark` for a run's score, by `compare_runs` for two
runs; `intervals` and `estimators` are functions on numbers that any code may call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.core import late

if TYPE_CHECKING:
    from harness.scoring.comparison import PairedComparison, compare_runs
    from harness.scoring.comparison_published import PublishedComparison, compare_published
    from harness.scoring.published import PublishedScore, load_published
    from harness.scoring.score import Bounds, GroupScore, Score, score_benchmark
    from harness.scoring.stats_draws import maj_at_k, pass_at_k
    from harness.scoring.tally import QuestionTally
    from harness.scoring.workload import Speed

__all__ = [
    "Bounds",
    "GroupScore",
    "PairedComparison",
    "PublishedComparison",
    "PublishedScore",
    "QuestionTally",
    "Score",
    "Speed",
    "compare_published",
    "compare_runs",
    "load_published",
    "maj_at_k",
    "pass_at_k",
    "score_benchmark",
]

__getattr__ = late.import_on_use(
    __name__,
    {
        "Bounds": "score",
        "GroupScore": "score",
        "PairedComparison": "comparison",
        "PublishedComparison": "comparison_published",
        "PublishedScore": "published.value",
        "QuestionTally": "tally",
        "Score": "score",
        "Speed": "workload",
        "compare_published": "comparison_published",
        "compare_runs": "comparison",
        "load_published": "published.loading",
        "maj_at_k": "estimators",
        "pass_at_k": "estimators",
        "score_benchmark": "score",
    },
)
