"""`harness gate`: whether a model still reaches its floors, with few samples and a promised rate of false alarms."""
