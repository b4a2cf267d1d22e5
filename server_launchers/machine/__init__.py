"""Facts about this machine: its accelerators, its processes, an engine's environment and version.

Engines, `replicas` and `keeping` enter here. No code here knows an engine by name or starts a server.
"""
