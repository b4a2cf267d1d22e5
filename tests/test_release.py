"""What goes out: version, changelog, the reasons of dependencies, files for contributors, the container."""

from __future__ import annotations

import re
import tomllib

import yaml

from harness.core.installation import __version__
from harness.options.commands import COMMANDS
from tests.conftest import CHECKOUT
from tools import release

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]


def test_one_version_everywhere() -> None:
    assert release.version() == __version__
    assert not [one for one in release.problems(__version__) if "CITATION" in one]
    assert {"CITATION.cff does not name version 99.0.0", "CHANGELOG.md has no section `## 99.0.0`"} <= {
        *release.problems("99.0.0")
    }


def test_each_dependency_has_a_reason_and_a_size() -> None:
    page = (CHECKOUT / "docs" / "decisions.md").read_text("utf-8")
    for requirement in PROJECT["dependencies"]:
        name = re.split(r"[<>=;\[ ]", requirement)[0]
        row = next((line for line in page.splitlines() if line.startswith(f"| `{name}` |")), None)
        assert row is not None, f"no row for {name}"
        assert re.search(r"\| \d+\.\d", row), row
    for extra in ("llama-cpp", "vllm", "sglang"):
        assert f"`{extra}`" in page


def test_files_for_other_programs_can_be_read() -> None:
    issues = (f".github/ISSUE_TEMPLATE/{name}.yml" for name in ("bug", "wrong-grade"))
    for path in ("CITATION.cff", "compose.yaml", ".pre-commit-config.yaml", *issues):
        assert isinstance(yaml.safe_load((CHECKOUT / path).read_text("utf-8")), dict), path


def test_the_commands_that_a_release_tries_exist() -> None:
    assert {words[0] for words in release.ALONE} <= set(COMMANDS) | {"benchmarks", "serve"}
