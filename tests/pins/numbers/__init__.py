"""200 generated runs as they stand on disk (`runs.tar.xz`), and every number that the product states of them.

`numbers.jsonl` has a line for each score of a run, comparison, verification and plan. `tests.pins.numbers.pinned`
computes them and holds the only place that knows the form of the records. `python -m tests.pins.numbers.make` samples
the runs anew from its seed; then all numbers are written anew (`tests.pins.held`).
"""
