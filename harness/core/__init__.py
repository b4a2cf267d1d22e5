"""Records, identity, limits, exceptions and small tools that every other package shares. Anybody may enter.

Imports nothing of the harness. `files` and `yaml_file` read and write files, `about` looks for its folders and commit,
`http_get` asks the network.
"""
