"""The commands that the command line and Python both call, one module or package each.

A command prints nothing, and names options by field.
"""
