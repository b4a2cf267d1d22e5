"""Python of the pages parses, and no block of commands was wrapped like prose."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, blocks

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_a_page_keep_their_lines(page: Path) -> None:
    for block in blocks(page, "python"):
        ast.parse(block.text.replace("…", "..."), f"{page}:{block.line}")
    for block in blocks(page, "", "sh"):
        lines = block.text.splitlines()
        # Wrapped like prose, a command would stand at the end of the description before it.
        if sum(line.startswith("harness ") for line in lines) > 1:
            joined = [line for line in lines if re.search(r" {2,}.*\bharness [a-z]+( |$)", line)]
            assert not joined, f"{page}:{block.line}: {joined[0]}"
