"""What each command does, from its options to its outcome: the functions that the command line and Python both call.

A module or package a command; others hold what several commands share, such as the runs that are made of another tool's
outputs (`imported_runs`). A command prints nothing, and names options by field.
"""
