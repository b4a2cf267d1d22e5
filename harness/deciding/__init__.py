"""Decisions based on several scores: run comparisons, published scores, nightly gates and races. No I/O.

Start with `compare_runs` in `comparison`, or with `gate` and `race` for decisions at several looks. `stats_differences`
has the functions on plain numbers.
"""
