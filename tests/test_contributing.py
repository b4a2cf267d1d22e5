"""The pages and targets for those who change the code: what they name is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parent.parent
PAGE = (CHECKOUT / "CONTRIBUTING.md").read_text("utf-8")
MAKEFILE = (CHECKOUT / "Makefile").read_text("utf-8")
PARTS = {f"test-{path.name.removeprefix('on_').replace('_', '-')}" for path in (CHECKOUT / "tests").iterdir()}
TARGETS = set(re.findall(r"^([a-z][a-z-]*):(?! [A-Z]+ =)", MAKEFILE, re.MULTILINE))


def test_every_target_has_its_line_of_help() -> None:
    helped = re.findall(r"^## ([a-z-]+): \S.*\n(?:\1):", MAKEFILE, re.MULTILINE)
    assert sorted(TARGETS - set(helped)) == []
    done = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert {line.split()[0] for line in done.stdout.splitlines()} == TARGETS | {"test-PART"}


def test_the_files_and_targets_that_the_page_names_are_there() -> None:
    paths = re.findall(r"`((?:harness|tests|datasets|docs|server_launchers|examples|\.ci)/[\w./-]+)`", PAGE)
    assert len(paths) > 15
    assert [path for path in paths if "NAME" not in path and not (CHECKOUT / path).exists()] == []
    assert sorted(set(re.findall(r"make ([a-z-]+)", PAGE)) - TARGETS - PARTS) == []


def test_the_workflow_runs_what_anybody_runs() -> None:
    (workflow,) = (CHECKOUT / ".github" / "workflows").glob("*.yml")
    (job,) = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    script = (CHECKOUT / ".ci" / "run").read_text("utf-8")
    assert set(re.findall(r"make ([a-z-]+)", script)) <= TARGETS | PARTS
    (command,) = re.findall(r"^(make test) ", (CHECKOUT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert re.search(rf"^ *(?:\w+=\S+ )*{command}\b(?!-)", script, re.MULTILINE)
