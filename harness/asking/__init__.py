"""From what a person asks to a session: options, servers, settings, and the loop that asks.

Enter by `options.RunOptions`, `prepare.prepare` and `session.generate`. Nothing here names a flag or prints.
"""
