"""Engines as servers: a typed spec becomes the engine's own command line, and one supervisor keeps what it starts.

Enter through `spec.ServerSpec` and `keeping.supervisor.launch`, or `python -m server_launchers`. Knows no harness.
"""
