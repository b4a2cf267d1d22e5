"""The verbs that the command line and Python both call, one module or package each.

A verb prints nothing and names no flag.
"""
