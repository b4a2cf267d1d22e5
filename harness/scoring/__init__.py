"""The score of a run: counts, accuracy with its two errors, pass@k, maj@k, and other measures over its grades.

Formulas are in `docs/method/statistics.md`. Enter by `pipeline.score_run`; `stats` has functions on numbers. What is
concluded from several scores is in `harness.deciding`.
"""
