"""Mutants: does a test fail when a line of the product is wrong? `make mutants ROOM=journal` (docs/testing.md)."""
