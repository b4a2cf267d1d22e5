"""Records that `--json` prints where no lower package has such a value; the JSON schemas are made from them.

Commands fill the records in; nothing is computed here.
"""
