"""Where servers are started, watched and ended: supervisor, guard process, state files, logs.

Entered by commands through `supervisor` (start) and `servers` (find, show, stop).
"""
