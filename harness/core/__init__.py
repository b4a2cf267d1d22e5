"""Records, identity, limits, exceptions and small tools that every other package shares. Anybody may enter.

Imports nothing of the harness; touches files in `files` and `yaml_file`, the network in `http_get`.
"""
