"""Starts engines as servers: turns a typed spec into the engine's own command line, and keeps its processes.

Enter through `spec.ServerSpec` and `keeping.launch.launch`. Of `harness`, this package imports `harness.core` alone.
"""
