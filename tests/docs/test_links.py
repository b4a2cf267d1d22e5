"""Each link of a page to a file of the checkout leads to that file, and to a heading that it has; Python of the pages
parses, no block of commands was wrapped like prose, and no sentence is too long to be read once."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, blocks, sentences

PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "examples").glob("*/README.md"))]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs and code hosts make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", one)).lower().replace(" ", "-") for one in headings
    }


def broken(page: Path) -> list[str]:
    """The links of the page that lead nowhere."""
    text = re.sub(r"^```.*?^```|``?[^`\n]+``?", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_every_page_that_the_code_names_is_there() -> None:
    rooms = [ROOT / room for room in ("harness", "server_launchers", "datasets", "bench", "examples")]
    files = [path for room in rooms for path in room.rglob("*") if path.suffix in (".py", ".yaml", ".md")]
    files += [ROOT / name for name in ("Dockerfile", "Makefile", "compose.yaml", "pyproject.toml")]
    named = {name for path in files for name in re.findall(r"(?<![\w/])docs/[\w/-]+\.md\b", path.read_text("utf-8"))}
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_a_link_that_leads_nowhere_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One heading\n\n[a](page.md#one-heading) [b](page.md#another) [c](none.md) [d](https://example.org)\n"
    )
    assert broken(page) == ["page.md#another", "none.md"]


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


MAX_WORDS = 30
SKIMMED = {"docs/deciding.md", "docs/grading.md", "docs/statistics.md"}
"""Pages that many people skim: a sentence there has at most 25 words."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_is_long(page: Path) -> None:
    if page.parent.name in ("reference", "commands") or page.name == "CHANGELOG.md":
        return
    most = 25 if str(page.relative_to(ROOT)) in SKIMMED else MAX_WORDS
    assert [sentence for sentence, n_words in sentences(page) if n_words > most] == []


def test_the_words_of_a_sentence_are_counted(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "# A title\n\nOne `of us` [two](x.md) words. And\nmore.\n\n- A point\n\n    code\n"
    )
    assert [n for _, n in sentences(tmp_path / "page.md") if n] == [4, 2, 2]
