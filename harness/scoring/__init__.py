"""Aggregates over grades: accuracy with its two errors, pass@k, maj@k, comparison.

Formulas are in `docs/method/statistics.md`. Enter by `pipeline.score_run` for a run's score, by `compare_runs` in
`comparison` for two runs; `stats` and `stats_differences` are functions on numbers.
"""
