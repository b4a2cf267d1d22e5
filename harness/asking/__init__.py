"""Turns a user's options into a session: reads the options, finds or starts the servers, makes the settings, samples.

Callers use `options.RunOptions`, `prepare.prepare` and `session.generate`. Nothing here names a flag or prints.
"""
