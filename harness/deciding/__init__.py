"""Decisions based on several scores: run comparisons, published scores, and nightly gates. No I/O.

Start with `compare_runs` in `paired_comparison`, or with `gate` for decisions at several looks. `difference_stats` has
the functions on plain numbers.
"""
