"""From a user's options to a session: options, servers, settings, and the loop that samples.

Enter by `options.RunOptions`, `prepare.prepare` and `session.generate`. Nothing here names a flag or prints.
"""
