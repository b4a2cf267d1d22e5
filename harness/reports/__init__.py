"""Formats scores as tables and pages. Reads run folders and writes nothing; untrusted text stays inert in every format.

`report` makes complete reports; `score_tables` makes single tables, which `formats` writes.
"""
