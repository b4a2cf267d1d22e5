"""Each tutorial, its commands typed as they stand into one shell, with a real model: `make test-docs`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from tests.docs.pages import DOCS, Typed, blocks, commands
from tests.docs.trying import Bench
from tests.system.command import environment

TUTORIALS = sorted(page for page in (DOCS / "tutorials").glob("*.md") if page.name != "README.md")


def typed(page: Path) -> str:
    return "".join(block.text for block in blocks(page, "sh"))


@pytest.mark.whole_pages
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_commands_of_the_page_work_as_they_stand(page: Path, tmp_path: Path, whole_smollm2: Path) -> None:
    script = "set -euo pipefail\n" + typed(page)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    try:
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=environment(tmp_path, {"PATH": path}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=580,
            check=False,
        )
    finally:
        stop = [sys.executable, "-m", "harness", "serve", "stop", "--all"]
        subprocess.run(stop, env=environment(tmp_path), capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_each_page_is_in_the_list_and_has_commands(page: Path) -> None:
    assert f"({page.name})" in (DOCS / "tutorials" / "README.md").read_text("utf-8")
    assert typed(page).count("\nharness ") >= 2


@pytest.mark.parametrize("one", [one for page in TUTORIALS for one in commands(page)], ids=str)
def test_each_command_takes_its_flags(bench: Bench, one: Typed) -> None:
    bench.parse(list(one.words))


def test_the_score_of_each_student_is_read_from_a_table_of_excel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script of own-class.md on a table with a byte order mark, a line break in a cell, and an empty line."""
    monkeypatch.chdir(tmp_path)
    rows = 'name,question,answer,response\r\nAnn,1+1?,2,"so\r\n2"\r\nBo,1+1?,2,3\r\n\r\nAnn,1+1?,2,\\boxed{2}\r\n'
    Path("typed.csv").write_text(rows, encoding="utf-8-sig", newline="")
    harness.score("typed.csv", as_run="results/typed", workers=1)
    harness.export("results/typed", "csv")
    (script,) = re.findall(r"python3 - <<'END'\n(.*?)\nEND\n", (DOCS / "tutorials" / "own-class.md").read_text(), re.S)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "{'Ann': '2 of 2', 'Bo': '0 of 1'}\n", done.stderr
