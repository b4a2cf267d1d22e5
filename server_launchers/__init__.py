"""Start engines as servers: turn a typed spec into the engine's own command line, and manage its processes.

Enter through `spec.ServerSpec` and `keeping.launch.launch`. From `harness`, this package imports only `harness.core`.
"""
