"""The life of a server: start and end (`launch`), the process that watches it (`guard`), record and log (`servers`).

Commands enter through `launch` (start) and `servers` (list, show, stop).
"""
