"""Generates samples: from settings to finished samples on disk. Callers use `runner.generate`; nothing here grades.

`dispatch` decides, without I/O; `network` carries out; `session` handles the run folder.
"""
