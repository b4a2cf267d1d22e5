"""A run folder, on a disk in memory where there is one, so that a sync costs nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.runs import BenchmarkFolder, RunFolder
from tests.runs.recorded import BENCHMARK


@pytest.fixture
def quick_path() -> Iterator[Path]:
    """A fresh folder in memory, else in the usual temporary place."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="harness-runs-", dir=memory if os.access(memory, os.W_OK) else None))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def run(quick_path: Path) -> RunFolder:
    """A run's folder, not yet made."""
    return RunFolder(quick_path / "run")


@pytest.fixture
def folder(run: RunFolder) -> BenchmarkFolder:
    """A benchmark's folder within the run, not yet made."""
    return run.benchmark(BENCHMARK)


@pytest.fixture
def mount_small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a file system in memory with the given options (`size=64k`, `ro`); skips where that is not allowed."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        disk = tmp_path / f"disk{len(mounted)}"
        disk.mkdir(exist_ok=True)
        if os.geteuid() != 0 or shutil.which("mount") is None:
            pytest.skip("mounting a small disk needs root and mount(8)")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"this machine mounts no tmpfs: {done.stderr.strip()}")
        mounted.append(disk)
        return disk

    yield mount
    for disk in mounted:
        subprocess.run(["umount", disk], check=True)
