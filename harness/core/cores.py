"""How many processor cores this process was granted, which may be far fewer than the machine has."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def granted_cores() -> int:
    """Number of cores that this process may use, at least 1: those that taskset or Slurm leaves it, and no more than
    the quotas of its cgroup (version 2) and of those above it, rounded up.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
        group = _CGROUPS / next(line[4:] for line in lines if line.startswith("0::/"))
        for folder in (group, *group.parents):
            # `max` in place of a quota, or no such file, bounds nothing.
            with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
                quota, period = map(int, (folder / "cpu.max").read_text(encoding="ascii").split())
                cores = min(cores, max(1, -(-quota // period)))
    return cores
