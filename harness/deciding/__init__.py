"""What follows from several scores: comparisons, published scores, a gate's lines over nights, a race. No I/O.

Enter by `compare_runs` in `comparison`, and by `gate` and `race` for decisions at several looks;
`stats_differences` has functions on numbers.
"""
