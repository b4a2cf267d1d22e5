"""The OpenMP runtime that llama.cpp's wheel expects of the system, for systems that lack it (bare Debian does).

The wheel of `pykdtree`, a dependency of the extra `llama-cpp` for this reason only, carries GNU's runtime under a
name of its own. The loader finds it through a folder with the expected name in it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

from server_launchers.folders import cache_folder

RUNTIME = "libgomp.so.1"
CARRIER = "pykdtree"


def environment() -> dict[str, str]:
    """Variables for a program that needs the runtime; empty where the system has it, or nothing carries it."""
    if sys.platform != "linux" or _system_has_it():
        return {}
    carried = _carried()
    if carried is None:
        return {}
    folder = cache_folder() / "openmp" / carried.name
    link = folder / RUNTIME
    if not (link.is_symlink() and link.resolve() == carried):
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"{RUNTIME}.{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(carried)
        fresh.replace(link)
    former = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": f"{folder}{os.pathsep}{former}" if former else str(folder)}


def _system_has_it() -> bool:
    try:
        ctypes.CDLL(RUNTIME)
    except OSError:
        return False
    return True


def _carried() -> Path | None:
    """The runtime in the carrier's wheel."""
    spec = importlib.util.find_spec(CARRIER)
    if spec is None or spec.origin is None:
        return None
    libraries = Path(spec.origin).resolve().parent.parent / f"{CARRIER}.libs"
    return next(iter(sorted(libraries.glob("libgomp*.so*"))), None)
