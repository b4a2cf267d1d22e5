"""Decisions based on several scores: run comparisons, published scores, and nightly gates. No I/O.

Start with `compare_runs` in `comparison`, or with `gate` for decisions at several looks. `stats_differences` has the
functions on plain numbers.
"""
