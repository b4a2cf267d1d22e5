"""The network thread: carries out the dispatcher's orders and lets the user control a run in progress.

The runner's entry point is `thread`; the command line also uses `control` and `admission`.
"""
