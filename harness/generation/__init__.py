"""Asks for samples: from settings to finished samples on disk. Enter by `runner.generate`; nothing here judges.

`dispatch` decides, without I/O; `network` carries out; `session` handles the run folder.
"""
