"""What is asked next, where, how a failure is met, when a session ends. No I/O, no clock, no threads of its own.

`dispatcher` is the door, for `network` and for the simulator of the tests; the other modules are its parts.
"""
