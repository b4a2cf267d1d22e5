"""Where no extension is, the core says what is missing.

For: harness.core.plugins, harness.extensions.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.exports.graded_runs import varied, write_run


@pytest.fixture
def core(tmp_path: Path) -> Path:
    """A copy of the packages without `harness/extensions`."""
    for name in ("harness", "server_launchers", "datasets", "results"):
        # The compiled modules are copied with their sources.
        shutil.copytree(CHECKOUT / name, tmp_path / "core" / name, ignore=shutil.ignore_patterns("extensions"))
    assert not (tmp_path / "core/harness/extensions").exists()
    return tmp_path / "core"


def command(core: Path, place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "HARNESS_"))}
    environment |= {"PYTHONPATH": str(core)}
    argv = [sys.executable, "-m", "harness", *words]
    return subprocess.run(argv, cwd=place, env=environment, capture_output=True, text=True, check=False)


def test_what_an_extension_would_do_is_refused_in_a_sentence(core: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "run", varied())
    for line, sentence in (
        ("export run --to trl", "--to trl: unknown format"),
        ("score run --track wandb", "--track wandb: unknown tracker"),
        ("score run --on ray", "--on ray: no cluster extension is installed"),
    ):
        done = command(core, tmp_path, *line.split())
        assert (done.returncode, done.stderr.count("\n"), sentence in done.stderr) == (2, 1, True), done.stderr
