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
        words = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
        group = _CGROUPS / next(line[4:] for line in words if line.startswith("0::/"))
        quotas = [quota for folder in (group, *group.parents) if (quota := _quota(folder / "cpu.max"))]
        cores = min([cores, *quotas])
    return cores


def _quota(file: Path) -> int | None:
    """The cores of a cgroup's `cpu.max`, which holds microseconds and their period; None for `max`, or without it."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = map(int, file.read_text(encoding="ascii").split())
        return max(1, -(-quota // period))
    return None
