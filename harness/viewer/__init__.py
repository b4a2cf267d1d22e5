"""Reading a run: its samples with their verdicts, in the terminal (`show`, `compare --samples`) and a browser (`view`).

Reads the files of a run, also while it grows, and writes only the overrides that a person makes.
"""
