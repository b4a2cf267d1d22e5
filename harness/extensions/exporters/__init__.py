"""One file a format of `harness export`: its `EXPORTER` says what it holds and who writes it."""
