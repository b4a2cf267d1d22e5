"""Records, identity, limits, exceptions and small tools that all other packages share. Any package may import it.

Imports nothing else from the harness. `files` and `yaml_file` read and write files, `installation` looks for its
folders and commit, `http_get` uses the network.
"""
