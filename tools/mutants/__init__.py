"""Mutation testing: changes the product line by line, and checks that a test fails for each change (a mutant). `make
mutants MODULE=runs/journal.py` (docs/testing.md).
"""
