"""Command lines of other tools: what their flags are called here, from a table for each tool, and our equivalent
command.

Imports no command, so that the errors of all commands can use it.
"""
