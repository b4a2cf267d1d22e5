"""One file per engine: how to start it, what its log lines mean, and how to recognize and communicate with its servers.

All code that depends on the engine goes through `table`; nothing here starts or queries a server. A new engine is a
file with an `ENGINE`, plus its name in `spec.EngineName` (CONTRIBUTING.md).
"""
