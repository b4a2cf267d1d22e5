"""Verifiers of benchmarks whose answers no rule compares: grids, puzzles, needles, instructions.

Enter by the name that a card states, such as `harness.grading.verifiers.grids:same_grid`; each is a function (answer,
question) -> bool or `Parts`, and runs in the bounded workers. All of them are given the whole reply (`whole_reply` in
the card's rules) without its reasoning.
"""
