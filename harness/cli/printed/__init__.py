"""Records that `--json` prints when no lower-level package defines them; the JSON schemas are made from them.

Commands fill in the records; nothing is computed here.
"""
