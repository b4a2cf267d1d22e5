"""`harness gate` and `harness race`: decisions with few samples and a guaranteed rate of false decisions."""
