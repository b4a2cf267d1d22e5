"""The network thread: carries out the dispatcher's orders, and lets a run be steered while it runs.

The runner enters by `thread`; the command line also uses `control` and `admission`.
"""
