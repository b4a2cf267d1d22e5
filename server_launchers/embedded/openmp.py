"""Find the OpenMP runtime that llama.cpp's wheel needs, for systems without one (bare Debian).

The wheel of `pykdtree` contains GNU's runtime under another name, and is a dependency of the extra `llama-cpp` only for
this reason. The loader finds the runtime through a folder that contains it under the expected name.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

from harness.core.installation import cache_folder

RUNTIME = "libgomp.so.1"
"""File name under which the loader looks for the runtime."""
CARRIER = "pykdtree"
"""Package whose wheel contains the runtime."""


def environment() -> dict[str, str]:
    """Environment variables for a program that needs the runtime: where to load it from, if the system does not have
    it, and how its threads wait for each other.

    Waiting threads sleep. By OpenMP's default they spin: on a busy machine they occupy the cores that the thread they
    wait for needs, and the demo took three times as long.
    """
    wait = {"OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "passive")}
    if sys.platform != "linux" or _system_has_it():
        return wait
    carried = _runtime_of_wheel()
    if carried is None:
        return wait
    folder = cache_folder() / "openmp" / carried.name
    link = folder / RUNTIME
    if not (link.is_symlink() and link.resolve() == carried):
        folder.mkdir(parents=True, exist_ok=True)
        # Linked under a temporary name and renamed, because another start may be loading from this folder right now.
        fresh = folder / f"{RUNTIME}.{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(carried)
        fresh.replace(link)
    former = os.environ.get("LD_LIBRARY_PATH")
    return wait | {"LD_LIBRARY_PATH": f"{folder}{os.pathsep}{former}" if former else str(folder)}


def _system_has_it() -> bool:
    """Whether the system has the OpenMP library."""
    try:
        # Loading is the only reliable test, because the loader's cache and LD_LIBRARY_PATH both matter.
        ctypes.CDLL(RUNTIME)
    except OSError:
        return False
    return True


def _runtime_of_wheel() -> Path | None:
    """Path of the runtime inside the wheel of `pykdtree`; None if there is none."""
    spec = importlib.util.find_spec(CARRIER)
    if spec is None or spec.origin is None:
        return None
    libraries = Path(spec.origin).resolve().parent.parent / f"{CARRIER}.libs"
    return next(iter(sorted(libraries.glob("libgomp*.so*"))), None)
