"""docs/reference is what the code states now; llms.txt names every page."""

from __future__ import annotations

import re

import pytest

from harness.scoring import stats
from tests.docs.pages import DOCS, ROOT
from tools.reference import MODULES, PAGES, VARIABLES


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_states(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_DATASETS", raising=False)
    stored = (DOCS / "reference" / name).read_text("utf-8")
    assert stored == PAGES[name]().rstrip("\n") + "\n", "python -m tools.reference writes it anew"


def undescribed(page: str) -> list[str]:
    """The records of a page with a field that has no description."""
    return [section.partition("\n")[0] for section in re.split(r"\n##+ ", page) if re.search(r"\): *$", section, re.M)]


def test_every_field_of_a_record_has_a_description() -> None:
    """The sentence below the field in the record's class."""
    assert undescribed(PAGES["json.md"]()) == []
    assert undescribed(PAGES["run-folder.md"]()) == []
    assert undescribed("\n## A\n\n- `a` (string): Name.\n\n## B\n\n- `b` (string): \n") == ["B"]


@pytest.mark.parametrize("name", MODULES)
def test_the_module_is_what_the_declarations_state(name: str) -> None:
    assert (ROOT / name).read_text("utf-8") == MODULES[name](), "python -m tools.reference writes it anew"


def test_every_variable_of_ours_is_in_the_table() -> None:
    sources = [
        path.read_text("utf-8") for room in ("harness", "server_launchers") for path in (ROOT / room).rglob("*.py")
    ]
    read = {name for text in sources for name in re.findall(r"[\"`$](HARNESS_[A-Z_]+)[\"`]", text)}
    assert {"HARNESS_CACHE", "HARNESS_DATASETS"} <= read
    names = " ".join(VARIABLES)
    assert [name for name in read if name not in names] == []


def test_llms_txt_names_every_page_but_those_of_single_commands() -> None:
    named = re.findall(r"\]\((docs/[^)]+)\)", (ROOT / "llms.txt").read_text("utf-8"))
    pages = {str(page.relative_to(ROOT)) for page in DOCS.rglob("*.md") if page.parent.name != "commands"}
    assert sorted(named) == sorted(pages)


def test_the_page_of_statistics_prints_the_table_of_intervals() -> None:
    table = [row for row in (stats.__doc__ or "").splitlines() if row.startswith("|")]
    assert len(table) > 8
    assert "\n".join(table) in (DOCS / "method" / "statistics.md").read_text("utf-8")
