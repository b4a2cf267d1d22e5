"""Generates samples: from settings to finished samples on disk. Callers use `runner.generate`; nothing here grades.

`dispatch` makes the decisions, without I/O; `network` carries them out; `session` handles the run folder.
"""
