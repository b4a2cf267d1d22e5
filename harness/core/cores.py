"""The processor cores and memory granted to this process, which may be far less than the machine has."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def _groups(controller: str = "") -> Iterator[Path]:
    """The folders of this process's cgroup and its parents: of version 2, or of a controller of version 1."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines():
            _, names, path = line.split(":", 2)
            if names == controller:
                group = _CGROUPS / controller / path.lstrip("/")
                yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(_CGROUPS))


def granted_cores() -> int:
    """The number of cores that this process may use, at least 1: those allowed by taskset or Slurm, up to the quotas of
    its cgroup (version 2) and the cgroup's parents, rounded up.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder in _groups():
        # `max` instead of a quota, or a missing file, means no limit.
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = map(int, (folder / "cpu.max").read_text(encoding="ascii").split())
            cores = min(cores, max(1, -(-quota // period)))
    return cores


def granted_memory() -> int:
    """The bytes of memory that this process may use: the machine's memory, limited by its cgroup (version 1 or 2) and
    the cgroup's parents.
    """
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    files = [folder / "memory.max" for folder in _groups()]
    files += [folder / "memory.limit_in_bytes" for folder in _groups("memory")]
    for file in files:
        with contextlib.suppress(OSError, ValueError):
            size = min(size, int(file.read_text(encoding="ascii")))
    return size
