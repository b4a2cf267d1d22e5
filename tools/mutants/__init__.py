"""Mutation testing: changes the product line by line, and checks that a test fails for each change (a mutant). `make
mutants ROOM=journal` (docs/testing.md).
"""
