"""Kinds of answers that the rules do not compare: one room each, found by its name."""
