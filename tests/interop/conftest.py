"""Exports in the hands of the tools they are for; left out of plain `pytest` for what it installs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.runs import RunFolder
from tests.exports.graded_runs import sample, varied, write_run
from tests.servers import environments

Asking = Callable[[str, str], str]


@pytest.fixture(scope="session")
def python() -> Path:
    """Interpreter of the environment that holds the other tools."""
    return environments.python_of(environments.INTEROP)


@pytest.fixture(scope="session")
def ask(python: Path) -> Asking:
    """What a program of theirs prints, which reads the path in its first argument."""

    def asked(program: str, path: str) -> str:
        words = [python, "-c", f"import sys\nPATH = sys.argv[1]\n{program}", path]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return asked


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of a benchmark of the hub, with hostile, empty, cut and thoughtful replies."""
    many = [sample(2, index, rf"number {index}: \boxed{{{3 + index % 2}}}", "math500") for index in range(2, 12)]
    return write_run(tmp_path_factory.mktemp("runs") / "run", {"math500": [*varied("math500"), *many]}, of_each=12)
