"""The core works where no extension is, and says what is missing; with them, each is found by its place alone.

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


@pytest.mark.wide
def test_a_run_is_scored_and_reported_without_any_extension(core: Path, tmp_path: Path) -> None:
    run = str(write_run(tmp_path / "run", varied(), scored=False).path)
    for words in (["score", run], ["report", run], ["export", "--help"], ["serve", "--help"]):
        done = command(core, tmp_path, *words)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_what_an_extension_would_do_is_refused_in_a_sentence(core: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "run", varied())
    for line, sentence in (
        ("export run --to trl", "--to trl: unknown format"),
        ("score run --track wandb", "--track wandb: unknown tracker"),
        ("score run --on ray", "--on ray: no cluster extension is installed"),
    ):
        done = command(core, tmp_path, *line.split())
        assert (done.returncode, done.stderr.count("\n"), sentence in done.stderr) == (2, 1, True), done.stderr


@pytest.mark.wide
def test_a_new_file_is_a_new_exporter(core: Path, tmp_path: Path) -> None:
    room = core / "harness/extensions/exporters"
    room.mkdir(parents=True)
    room.joinpath("word_counts.py").write_text(
        "from harness.exports import Exporter, File\n"
        "def write(chosen, out):\n"
        "    out.mkdir(parents=True)\n"
        "    path = out / 'counts.txt'\n"
        "    path.write_text(str(sum(len((row.sample.text or '').split()) for one in chosen for row in one.rows())))\n"
        "    return [File(path)]\n"
        "EXPORTER = Exporter(kind='samples', write=write)\n"
    )
    write_run(tmp_path / "run", varied())
    done = command(core, tmp_path, "export", "run", "--to", "word-counts", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert int((tmp_path / "out/counts.txt").read_text()) > 0
    assert "Did you mean word-counts?" in command(core, tmp_path, "export", "run", "--to", "word-count").stderr
