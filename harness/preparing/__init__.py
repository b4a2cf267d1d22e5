"""Prepares a run up to its first request: questions, a running or new server, server discovery, and settings.

Callers use `prepare.prepare`; `harness.commands.run` samples the prepared run. Nothing here prints; messages name
options by field.
"""
