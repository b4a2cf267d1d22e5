"""The how-to pages: each command is accepted, and the recipes read a real run."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from server_launchers.keeping.supervisor import RunningServer
from tests.docs.pages import DOCS, Typed, blocks, commands
from tests.docs.trying import Bench
from tests.system.command import harness

PAGES = sorted((DOCS / "howto").glob("*.md"))


@pytest.mark.parametrize("typed", [one for page in PAGES for one in commands(page)], ids=str)
def test_each_line_is_accepted(bench: Bench, typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.try_(typed) in (0, -1), capsys.readouterr().err


def test_recipes_read_a_run(tmp_path_factory: pytest.TempPathFactory, embedded_server: RunningServer) -> None:
    if shutil.which("jq") is None:
        pytest.skip("no jq")
    folder = tmp_path_factory.mktemp("recipes")
    words = ["run", "demo:2", "--limit", "2", "--max-tokens", "16", "--no-canary", "--out", "run"]
    assert harness(folder, *words, "--base-url", embedded_server.base_urls[0]).code == 0
    assert harness(folder, "score", "run").code == 0
    page = DOCS / "howto" / "tables.md"
    for language, start in (("jq", ["bash", "-euo", "pipefail", "-c"]), ("python", [sys.executable, "-c"])):
        (block,) = blocks(page, language)
        done = subprocess.run([*start, block.text], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "demo-" in done.stdout
