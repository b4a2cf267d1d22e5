"""Asking for samples: from settings to finished samples on disk. `runner.generate` is the door; nothing here judges.

`dispatch` decides, without I/O; `network` carries out; `session` is the run folder's side.
"""
