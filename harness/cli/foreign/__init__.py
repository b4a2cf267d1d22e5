"""Command lines of other tools: what their flags are here, from a table for each tool, and the command of ours.

Imports no command, so that the errors of all commands can ask it.
"""
