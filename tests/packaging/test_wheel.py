"""The commands of docs/install.md in empty environments, and the wheels of docs/gpu-nodes.md next to `datasets`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.docs.pages import blocks


def succeed(*words: str | Path, cwd: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """Run a program that must succeed, and return its output."""
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment that holds uv and pipx."""
    folder = tmp_path_factory.mktemp("installers") / "env"
    venv.create(folder, symlinks=True, with_pip=False)
    succeed(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet", "uv", "pipx")
    return folder / "bin"


@pytest.mark.parametrize("line", blocks(CHECKOUT / "docs/install.md", "sh")[0].text.splitlines())
def test_each_line_of_the_guide_installs_a_harness_that_works(line: str, installers: Path, tmp_path: Path) -> None:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    clean |= {name: str(tmp_path / name) for name in ("UV_TOOL_DIR", "PIPX_HOME")}
    clean |= {name: str(tmp_path / "bin") for name in ("UV_TOOL_BIN_DIR", "PIPX_BIN_DIR")}
    clean["PATH"] = f"{installers}:{clean['PATH']}"
    line = re.sub(r"(?<=-m venv )venv|\bvenv(?=/)", str(tmp_path / "venv"), line.partition("#")[0])
    succeed("bash", "-euc", line, cwd=CHECKOUT, environment=clean)
    program = next(path for path in (tmp_path / "bin/harness", tmp_path / "venv/bin/harness") if path.exists())
    assert "correct" in succeed(program, "grade", "1/2", r"so \boxed{0.5}", cwd=tmp_path, environment=clean)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment that holds the collected wheels and the real `datasets` library."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip"]
    succeed(*pip, "wheel", "--quiet", "--wheel-dir", folder, CHECKOUT)
    wheels = sorted(folder.glob("*.whl"))
    assert len([path for path in wheels if path.name.startswith("reasoning_")]) == 3
    venv.create(folder / "env", symlinks=True, with_pip=False)
    python = folder / "env" / "bin" / "python"
    succeed(*pip, "--python", python, "install", "--quiet", "--no-index", "--no-deps", *wheels)
    done = subprocess.run(
        [*pip, "--python", str(python), "install", "--quiet", "datasets"], capture_output=True, text=True, check=False
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
