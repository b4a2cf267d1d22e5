"""Verifiers for benchmarks whose answers no rule can compare: grids, puzzles, needles, instructions.

The entry point is the name in a card, such as `harness.grading.verifiers.grids:same_grid`; each is a function (answer,
question) -> bool or `Parts`, and runs in the workers with their limits. All of them receive the whole reply
(`whole_reply` in the card's rules) without its reasoning.
"""
