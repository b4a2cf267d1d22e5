"""The life of a server: its start and end (`launch`), the process that watches it (`guard`), its record (`servers`).

`engine_log` reads what an engine's log says. Commands enter through `launch` (start) and `servers` (list, show, stop).
"""
