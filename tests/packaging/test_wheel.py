"""The built wheel, installed beside Hugging Face's `datasets`, outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

MEMBERS = [str(path.parent) for path in sorted(CHECKOUT.glob("packages/*/pyproject.toml"))]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment that holds the wheel and the real `datasets` library."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip"]
    built = subprocess.run(
        [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(CHECKOUT), *MEMBERS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    wheels = sorted(map(str, folder.glob("reasoning_*.whl")))
    assert len(wheels) == 1 + len(MEMBERS)
    venv.create(folder / "env", symlinks=True, with_pip=False)
    python = folder / "env" / "bin" / "python"
    done = subprocess.run(
        [*pip, "--python", str(python), "install", "--quiet", *wheels, "datasets"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"the package index has no `datasets`: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return python.parent


def run(installed: Path, folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment in an empty folder, away from the checkout's own packages."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(installed / argv[0]), *argv[1:]], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.timeout(400)
def test_the_wheel_works_beside_the_datasets_library(installed: Path, tmp_path: Path) -> None:
    listed = run(installed, tmp_path, "harness", "benchmarks", "list")
    assert listed.returncode == 0, listed.stderr
    assert "demo" in listed.stdout
    suites = run(installed, tmp_path, "harness", "sweep", "--list")
    assert "limo10" in suites.stdout, suites.stderr
    shown = run(installed, tmp_path, "harness", "benchmarks", "show", "demo")
    assert shown.returncode == 0, shown.stderr
    assert r"\boxed" in shown.stdout
    code = "import datasets; datasets.Dataset.from_list([{'a': 1}]); print(datasets.__file__)"
    beside = run(installed, tmp_path, "python", "-c", code)
    assert beside.returncode == 0, beside.stderr
    own = Path(beside.stdout.strip()).parent
    assert not list(own.glob("*.yaml"))
    assert not list(own.glob("demo*"))
    code = "from harness.deciding.published import load_published; print(len(load_published()))"
    published = run(installed, tmp_path, "python", "-c", code)
    assert int(published.stdout) > 10, published.stderr
    graded = run(installed, tmp_path, "harness", "grade", "1/2", r"so \boxed{0.5}")
    assert graded.returncode == 0, graded.stderr
    assert "correct" in graded.stdout
