"""Decides which request is sent next and where, how failures are handled, and when a session ends.

No I/O and no threads; the clock is a parameter.
`network` and the tests' simulator use `dispatcher`; the other modules are its parts.
"""
