"""Kinds of answers that the grading rules cannot compare: a package for each, found by its name."""
