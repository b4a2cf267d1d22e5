"""Each command of the how-to pages is accepted, those of other pages are parsed; the recipes read a real run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.benchmarks.shards import Shard
from server_launchers.keeping.launch import RunningServer
from tests.docs.pages import DOCS, ROOT, Typed, blocks, commands
from tests.docs.trying import Bench
from tests.system.command import harness

SCALING = DOCS / "scaling.md"
PAGES = [DOCS / name for name in ("ci.md", "exports.md", "gpu-nodes.md", "running.md")]
OTHERS = [
    *(page for page in sorted(DOCS.glob("*.md")) if page not in PAGES and page.name != "moving.md"),
    *sorted((DOCS / "tutorials").glob("*.md")),
    ROOT / "examples" / "plugin_package" / "README.md",
]
"""Pages whose commands are parsed only; moving.md has a test of its own."""


@pytest.mark.parametrize("typed", [one for page in PAGES for one in commands(page)], ids=str)
def test_each_line_is_accepted(bench: Bench, typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.try_(typed) in (0, -1), capsys.readouterr().err


@pytest.mark.parametrize("typed", [one for page in OTHERS for one in commands(page)], ids=str)
def test_each_line_of_the_other_pages_is_parsed(bench: Bench, typed: Typed) -> None:
    bench.parse(list(typed.words))


def test_recipes_read_a_run(tmp_path_factory: pytest.TempPathFactory, embedded_server: RunningServer) -> None:
    if shutil.which("jq") is None:
        pytest.skip("no jq")
    folder = tmp_path_factory.mktemp("recipes")
    words = ["run", "demo:2", "--limit", "2", "--max-tokens", "16", "--no-canary", "--out", "run"]
    assert harness(folder, *words, "--base-url", embedded_server.base_urls[0]).code == 0
    assert harness(folder, "score", "run").code == 0
    page = DOCS / "exports.md"
    for language, start in (("jq", ["bash", "-euo", "pipefail", "-c"]), ("python", [sys.executable, "-c"])):
        *_, block = blocks(page, language)
        done = subprocess.run([*start, block.text], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "demo-" in done.stdout


def test_a_job_array_of_clients_takes_every_shard_once(tmp_path: Path) -> None:
    """The page's script as Slurm runs it, with a program in the place of `harness` that keeps its words."""
    script = next(block.text for block in blocks(SCALING, "bash") if "--shard" in block.text)
    program = tmp_path / "harness"
    program.write_text('#!/bin/sh\nprintf "%s " "$@" >> words\n')
    program.chmod(0o755)
    (first, last) = map(int, re.findall(r"--array=(\d+)-(\d+)", script)[0])
    for number in range(first, last + 1):
        slurm = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": str(last - first + 1)}
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **slurm}
        subprocess.run(["bash", "-s"], input=script, text=True, cwd=tmp_path, env=environment, check=True)
    typed = re.findall(r"--shard (\S+)", (tmp_path / "words").read_text())
    assert [Shard.parse(shard) for shard in typed] == [Shard(number, 8) for number in range(1, 9)]
