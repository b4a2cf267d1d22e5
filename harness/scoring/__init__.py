"""The score of a run: counts, accuracy with its two errors, pass@k, maj@k, and other metrics computed from its grades.

Formulas are in `docs/method/statistics.md`. Start with `pipeline.score_run`; `stats` has the functions on plain
numbers. Decisions based on several scores are in `harness.deciding`.
"""
