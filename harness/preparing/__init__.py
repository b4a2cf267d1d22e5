"""Everything before a run's first request, and it ends there: questions, a server found or started, a look, settings.

Callers use `prepare.prepare`; `harness.commands.run` samples what is prepared. Nothing here prints; options are named
by field.
"""
