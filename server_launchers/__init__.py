"""Starts engines as servers: turns a typed spec into the engine's own command line, and keeps its processes.

Enter through `spec.ServerSpec` and `keeping.supervisor.launch`, or `python -m server_launchers`. This package imports
nothing of `harness`.
"""

import sys

# As in `harness`: `python -m server_launchers` imports nothing else from the current folder.
if sys.argv[0] == "-m" and not sys.flags.safe_path and [f"{sys.path[0]}/server_launchers"] != __path__:
    del sys.path[0]
