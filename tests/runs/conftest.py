"""A run folder, on a disk in memory where there is one, so that a sync costs nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
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
