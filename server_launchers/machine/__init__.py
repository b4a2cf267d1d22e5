"""Facts about this machine: its accelerators, an engine's environment and version, the options the engine knows.

Engines, `replicas` and the supervisor enter here. No code here knows an engine by name or starts a server.
"""
