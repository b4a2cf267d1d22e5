"""The page of faults has every row, and every test that a page names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def test_every_row_is_there_and_says_what_shows_it() -> None:
    rows = re.findall(r"^\| (\d+) \|(.*)\|$", PAGE, re.MULTILINE)
    assert len(rows) > 90
    assert [int(number) for number, _ in rows] == list(range(1, len(rows) + 1))
    for number, row in rows:
        assert "`test_" in row or "no test" in row, number


def test_every_test_that_is_named_exists() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    named = set(re.findall(r"`(test_\w+)`", pages))
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert named - set(re.findall(r"def (test_\w+)\(", source)) == set()


def test_every_file_folder_and_target_that_is_named_exists() -> None:
    paths = set(re.findall(r"`(tests/[\w/.]+)", PAGE))
    assert len(paths) > 15
    assert not [path for path in paths if not (ROOT / path).exists()]
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", PAGE)) <= targets
