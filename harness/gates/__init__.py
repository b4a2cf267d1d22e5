"""`harness gate`: decisions with few samples and a guaranteed rate of false decisions."""
