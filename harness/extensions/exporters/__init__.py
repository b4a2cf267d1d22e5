"""The formats of `harness export`: a file for each, whose `EXPORTER` has its kind, its help and the function that
writes it."""
