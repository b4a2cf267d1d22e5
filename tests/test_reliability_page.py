"""Each row of the page of faults names a test that shows it, and every test that a page names exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from harness.client.protocol.failures import FailureKind
from harness.generation.dispatch.retry import Cause, advice

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def test_every_row_says_what_shows_it() -> None:
    tables = re.findall(r"^\| fault or threat \|.*\n\|[- |]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 25
    assert [row for row in rows if "`test_" not in row.rstrip(" |").rpartition("|")[2]] == []


def test_every_kind_of_failure_but_an_endless_reply_has_advice() -> None:
    kinds = (*get_args(FailureKind), "internal", "not asked")
    assert [kind for kind in kinds if not advice([Cause(kind, 1, "")], None)] == ["runaway"]


def test_every_test_that_is_named_exists() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    named = set(re.findall(r"`(test_\w+)`", pages))
    source = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (*(ROOT / "tests").rglob("test_*.py"), *ROOT.glob("packages/*/tests/test_*.py"))
    )
    assert len(named) > 50
    assert named - set(re.findall(r"def (test_\w+)\(", source)) == set()


def test_every_file_folder_and_target_that_is_named_exists() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    paths = set(re.findall(r"(?<![\w/.])((?:tests|bench|tools)/[\w/]+\.(?:py|jsonl|md|sh|txt))\b", pages))
    assert paths
    assert not [path for path in paths if not (ROOT / path).exists()]
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    # `make test-PART` runs the folder of that name below tests.
    parts = {f"test-{path.name.removeprefix('on_').replace('_', '-')}" for path in (ROOT / "tests").iterdir()}
    assert set(re.findall(r"`make ([a-z-]+)", pages)) <= targets | parts
