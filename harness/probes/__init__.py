"""Examines whether a server is healthy: its protocol, sampling, template and weights.

Callers use `probe.probe`. Each check is a small function of a `tested_server.Subject` (the server under test), and the
report lists the findings. A probe only queries servers; it grades nothing.
"""
