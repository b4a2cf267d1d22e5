"""Reading a run: its samples with their verdicts, in the terminal (`show`, `compare`) and in a browser (`view`).

Reads the files of a run, also while it grows, and writes only the overrides that a person makes.
"""
