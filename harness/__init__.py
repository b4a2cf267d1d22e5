"""Benchmark harness for reasoning models: start a server, run the client, score, report."""

__version__ = "0.1.0"
