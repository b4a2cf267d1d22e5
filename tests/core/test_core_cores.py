"""What the harness takes of a machine, and tells its children, is what was granted.

For: harness.core.cores, harness.runs.commit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core import cores, installation

ALL = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.mark.parametrize(
    ("quota", "granted"),
    [("50000 100000", 1), ("100000 100000", 1), ("max 100000", ALL), ("99900000 100000", ALL), ("0 0", ALL), ("", ALL)],
)
def test_a_quota_bounds_the_cores(quota: str, granted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    monkeypatch.setattr(cores, "_CGROUPS", tmp_path)
    assert cores.granted_cores() == granted


def test_a_child_bound_to_one_core_starts_one_grader() -> None:
    if shutil.which("taskset") is None:
        pytest.skip("no taskset")
    code = "from harness.presets.grading import GradingOptions as G; print(G().n_workers)"
    argv = ["taskset", "-c", str(min(os.sched_getaffinity(0))), sys.executable, "-c", code]
    assert subprocess.run(argv, check=True, capture_output=True, text=True).stdout == "1\n"


def test_git_sees_no_key(tmp_path: Path) -> None:
    if not (Path(installation.__file__).parents[2] / ".git").exists():
        pytest.skip("no checkout")
    (tmp_path / "git").write_text("#!/bin/sh\nenv\n")
    (tmp_path / "git").chmod(0o755)
    variables = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "OPENAI_API_KEY": "sk-geheim"}
    argv = [sys.executable, "-c", "from harness.runs.commit import commit; print(commit())"]
    seen = subprocess.run(argv, check=True, capture_output=True, text=True, env=variables).stdout
    assert "GIT_DIR=" in seen
    assert "geheim" not in seen
