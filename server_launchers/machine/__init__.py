"""Facts about this machine: its accelerators, its processes, an engine's environment and version.

Engines, `replicas` and `keeping` use this package. No code here refers to an engine by name or starts a server.
"""
