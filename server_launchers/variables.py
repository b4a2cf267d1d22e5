"""Environment variables for the processes that we start. Standard library only: the guard imports it."""

from __future__ import annotations

KEY_VARIABLE = "HARNESS_SERVER_KEY"
"""This variable hands a key to a program that takes keys on its command line only, where every user of the machine
could read them. `program.key_arguments` starts such a program.
"""

MARK = "REASONING_HARNESS_SERVER"
"""Every process and container of a server inherits this variable; its value is unique to one start of one member."""
