"""One file an engine: how it is started, what its log means, how its servers are known and spoken to.

Entered by `table`, from everywhere that depends on which engine it is; nothing here starts or asks a server. A new
engine is a file with an `ENGINE`, and its name in `spec.EngineName` (docs/servers.md, "A new engine").
"""
