"""Decides what is asked next and where, how failures are handled, and when a session ends.

No I/O and no threads; the clock is a parameter.
`network` and the tests' simulator enter by `dispatcher`; the other modules are its parts.
"""
