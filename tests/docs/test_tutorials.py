"""Each tutorial, its commands typed as they stand into one shell, with a real model: `make test-docs`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, blocks
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
            ["bash", "-c", script], cwd=tmp_path, env=environment(tmp_path, {"PATH": path}), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=580, check=False,
        )  # fmt: skip
    finally:
        stop = [sys.executable, "-m", "harness", "serve", "stop", "--all"]
        subprocess.run(stop, env=environment(tmp_path), capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_each_page_is_in_the_list_and_has_commands(page: Path) -> None:
    assert f"({page.name})" in (DOCS / "tutorials" / "README.md").read_text("utf-8")
    assert typed(page).count("\nharness ") >= 2
