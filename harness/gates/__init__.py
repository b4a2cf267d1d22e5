"""`harness gate` and `harness race`: decisions with few samples and a promised rate of false ones."""
