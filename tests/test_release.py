"""What goes out: version, changelog, the reasons of dependencies, files for contributors, the container."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from harness.core.about import __version__
from tests.conftest import CHECKOUT
from tools import on_index

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", CHECKOUT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_one_version_everywhere(release: ModuleType) -> None:
    assert release.version() == __version__
    assert not [one for one in release.problems(__version__) if "CITATION" in one]
    assert "CITATION.cff does not name version 99.0.0" in release.problems("99.0.0")
    assert "CHANGELOG.md has no section `## 99.0.0`" in release.problems("99.0.0")


def test_one_command_turns_all_pages_to_an_index() -> None:
    assert on_index.problems() == []


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("Run `uv tool install .` in a checkout of it.", 1),
        ("Install it from a\ncheckout. In the checkout, gather packages.", 2),
        ("pip install '.[report]'", 1),
        ("Build the image in a copy of the repository. Results are stored outside of the checkout.", 0),
    ],
)
def test_a_page_that_would_still_install_from_a_checkout_is_found(
    text: str, n: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(on_index, "CHECKOUT", tmp_path)
    monkeypatch.setattr(on_index, "PAGES", {})
    (tmp_path / "docs" / "howto").mkdir(parents=True)
    (tmp_path / "README.md").write_text("", "utf-8")
    (tmp_path / "docs" / "howto" / "page.md").write_text(text, "utf-8")
    assert on_index.problems() == ["docs/howto/page.md installs from a checkout besides"] * n


@pytest.mark.parametrize(("argv", "code"), [(["--help"], 0), (["--hepl"], 2), (["all"], 2)])
def test_a_question_about_the_command_rewrites_no_page(
    argv: list[str], code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(on_index, "CHECKOUT", tmp_path)
    monkeypatch.setattr(on_index, "PAGES", {"page.md": (("a checkout", "an index"),)})
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("", "utf-8")
    page = tmp_path / "page.md"
    page.write_text("from a checkout", "utf-8")
    with pytest.raises(SystemExit) as ended:
        on_index.main(argv)
    assert ended.value.code == code
    assert on_index.main(["--check"]) == 0
    assert page.read_text("utf-8") == "from a checkout"
    assert on_index.main([]) == 0
    assert page.read_text("utf-8") == "from an index"


def test_each_dependency_has_a_reason_and_a_size() -> None:
    page = (CHECKOUT / "docs" / "decisions.md").read_text("utf-8")
    for requirement in PROJECT["dependencies"]:
        name = re.split(r"[<>=;\[ ]", requirement)[0]
        row = next((line for line in page.splitlines() if line.startswith(f"| `{name}` |")), None)
        assert row is not None, f"no row for {name}"
        assert re.search(r"\| \d+\.\d", row), row
    for extra in ("parquet", "report", "llama-cpp", "reasoning-gym", "vllm", "sglang", "ascend"):
        assert f"`{extra}`" in page


@pytest.mark.parametrize(
    "path", ["CITATION.cff", "compose.yaml", ".pre-commit-config.yaml", ".github/ISSUE_TEMPLATE/bug.yml",
             ".github/ISSUE_TEMPLATE/wrong-grade.yml"],
)  # fmt: skip
def test_files_for_other_programs_can_be_read(path: str) -> None:
    assert isinstance(yaml.safe_load((CHECKOUT / path).read_text("utf-8")), dict)
