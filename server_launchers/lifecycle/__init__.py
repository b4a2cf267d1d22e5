"""The lifecycle of a server: start and stop (`launch`), the process that watches it (`guard`), record and log
(`servers`).

Commands enter through `launch` (start) and `servers` (list, show, stop).
"""
