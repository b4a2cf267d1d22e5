"""Scores as tables and pages. Reads run folders and writes nothing; foreign text stays inert text in every format.

`report` makes whole reports; `tables` makes single tables, which `formats` writes.
"""
