"""Reading a run: its samples with their verdicts, in the terminal (`harness show`, `diff`) and in a browser (`view`).

Reads the files of a run, also of one that is still going, and writes none but the overrides that a person makes.
"""
