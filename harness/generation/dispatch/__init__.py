"""Decides what is asked next and where, how failures are handled, and when a session ends. No I/O, no clock, no
threads.

`network` and the tests' simulator enter by `dispatcher`; the other modules are its parts.
"""
