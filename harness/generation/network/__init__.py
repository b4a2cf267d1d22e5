"""The network thread: it carries out what the dispatcher says, and lets a run be steered while it goes.

`thread` is the door, for the runner; `control` and `endpoints_file` are for the command line, too.
"""
