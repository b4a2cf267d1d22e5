"""What each command does, from its options to its outcome: the functions that the command line and Python both call.

There is a module or package per command; others contain what several commands share, such as the runs made from another
tool's outputs (`imported_runs`). A command prints nothing and names options by field.
"""
