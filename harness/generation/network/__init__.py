"""The network thread: carries out the dispatcher's decisions, and ends a run after a signal.

The runner's entry point is `thread`; the command line also uses `control` and `admission`.
"""
