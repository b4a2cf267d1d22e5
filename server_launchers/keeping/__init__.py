"""Starts, watches and ends servers: supervisor, guard process, state files, logs.

Commands enter through `supervisor` (start) and `servers` (find, show, stop).
"""
