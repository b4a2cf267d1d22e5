"""Examines whether a server is healthy: its protocol, sampling, template, weights and behavior under load.

Callers use `probe.probe`. Each check is a small function of a `subject.Subject` (the server under examination), and the
report lists what the checks found. A probe asks servers and grades nothing.
"""
