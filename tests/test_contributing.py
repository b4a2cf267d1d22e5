"""The pages and targets for those who change the code: what they name is there, and a new thing is on its page."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import pytest
import yaml

from harness.benchmarks.judge_forms import form_names
from harness.core import plugins
from harness.core.literals import ApiName, OutputsFormat
from harness.core.options import options_of
from harness.exports import formats
from harness.options.commands import all_options
from harness.options.run import RunOptions
from harness.presets.sampling import sampling_fields
from harness.tools.table import TOOLS
from server_launchers.spec import ENGINES

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


VERIFIERS = CHECKOUT / "harness" / "grading" / "verifiers"
LISTED: dict[str, Iterable[str]] = {
    "docs/exports.md": (*formats(), *plugins.extensions("tracker")),
    "docs/hosted.md": get_args(ApiName),
    "docs/judge.md": form_names(),
    "docs/servers.md": ENGINES,
    "docs/tools.md": TOOLS,
    "tests/foreign": {*get_args(OutputsFormat)} - {"sgl_eval"},  # read as nemo_skills
    "tests/grading": {path.stem for path in VERIFIERS.glob("[a-z]*.py")} - {"left_open"},  # leaves all to a judge
    "mkdocs.yml": [str(page.relative_to(CHECKOUT / "docs")) for page in (CHECKOUT / "docs").rglob("*.md")],
}
"""Page, or folder of tests → everything of its kind, which it has to name."""


def unnamed(names: Iterable[str], text: str) -> list[str]:
    """The names that the text lacks as words."""
    return [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]


@pytest.mark.parametrize("page", LISTED)
def test_a_page_names_everything_of_its_kind(page: str) -> None:
    files = [*(CHECKOUT / page).rglob("*.py")] or [CHECKOUT / page]
    text = "\n".join(file.read_text("utf-8") for file in files)
    assert unnamed(LISTED[page], text) == [], f"{page} does not name them"
    assert unnamed(["lm", "chat"], "lm-eval, chats") == ["lm", "chat"]


@pytest.mark.parametrize(("option", "names"), [("api", get_args(ApiName)), ("tool", TOOLS)])
def test_the_help_of_a_run_names_every_api_and_tool(option: str, names: Iterable[str]) -> None:
    assert unnamed(names, options_of(RunOptions)[option].help) == [], f"harness/options/run.py: the help of {option}"


def test_every_option_is_read_by_some_command() -> None:
    """Those of the sampling are sent by name, whatever they are."""
    paths = [path for room in ("harness", "server_launchers") for path in (CHECKOUT / room).rglob("*.py")]
    read = set[str]()
    for path in paths:
        own = r"self\.(\w+)" if path.parent.name == "options" else r"(?<=\.)\w+|(?<=\")\w+(?=\")"
        read.update(re.findall(own, path.read_text("utf-8")))
    declared = {name for command in all_options().values() for name in options_of(command)}
    assert declared - read - set(sampling_fields()) == set(), "no code outside harness/options reads them"
