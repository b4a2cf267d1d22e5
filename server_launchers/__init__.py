"""Start engines as servers: turn a typed spec into the engine's own command line, and manage its processes.

Enter through `spec.ServerSpec` and `lifecycle.launch.launch`. From `harness`, this package imports only shared
values of `harness.core` (errors, options, secrets, escaping, files), which does not import this package.
"""
