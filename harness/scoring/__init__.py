"""Aggregates over grades: accuracy with its two errors, pass@k, maj@k, comparison. Formulas in `docs/statistics.md`."""

from harness.scoring.estimators import maj_at_k, pass_at_k
from harness.scoring.score import Bounds, GroupScore, Score, score_benchmark

__all__ = ["Bounds", "GroupScore", "Score", "maj_at_k", "pass_at_k", "score_benchmark"]
