"""Answer kinds that the grading rules cannot compare: one package per kind, found by name."""
