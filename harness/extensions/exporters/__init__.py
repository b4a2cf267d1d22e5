"""The formats of `harness export`: one file per format, whose `EXPORTER` defines its kind, its help and the function
that writes it."""
