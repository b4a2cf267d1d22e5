"""Shows a run's samples with their verdicts, in the terminal (`show`, `compare`) and in a browser (`view`).

Reads the files of a run, even while the run is in progress, and writes only the overrides that a person makes.
"""
