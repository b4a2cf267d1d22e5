"""One file per engine: how it is started, what its log lines mean, how its servers are recognized and spoken to.

All code that depends on the engine enters by `table`; nothing here starts or asks a server. A new engine is a file with
an `ENGINE`, and its name in `spec.EngineName` (CONTRIBUTING.md).
"""
