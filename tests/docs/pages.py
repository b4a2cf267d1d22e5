"""Blocks of code of a Markdown page, and the `harness` commands that stand in them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """What stands between two fences. line: of its first line, from 1."""

    page: Path
    line: int
    language: str
    text: str


class Typed(NamedTuple):
    """A `harness` command of a page. words: without `harness`, as the shell gives them."""

    where: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.where} {shlex.join(self.words)}"


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of these languages, in their order; of none: all."""
    text = page.read_text("utf-8")
    fenced = [
        Block(page, text.count("\n", 0, match.start(2)) + 1, match[1], match[2]) for match in _FENCE.finditer(text)
    ]
    return [block for block in fenced if not languages or block.language in languages]


def commands(page: Path) -> list[Typed]:
    """The `harness` commands of the page's `sh` blocks."""
    return [typed for block in blocks(page, "sh") for typed in commands_of(block)]


def commands_of(block: Block) -> list[Typed]:
    """The `harness` commands of a block, one a line; a line may go on after a backslash."""
    found = []
    for line in block.text.replace("\\\n", "  ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.match(r"[A-Z_]+=", words[0]):
            words = words[1:]
        if words[:1] == ["harness"]:
            words = words[: next((n for n, word in enumerate(words) if word in ("||", "&&", "|", ";", "&")), None)]
            found.append(Typed(f"{block.page.relative_to(ROOT)}:{block.line}", tuple(words[1:])))
    return found


def sentences(page: Path) -> list[tuple[str, int]]:
    """The sentences of the page's paragraphs and lists, each with its number of words; a piece of code is one word."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "\n", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(?: {4}[^-]|[#|]).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"``?[^`]+``?", "code", text))
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    parts = [part for one in paragraphs for part in re.split(r"(?<=[.!?])[)\"*]*\s+", " ".join(one.split()))]
    return [(part, len(re.findall(r"[^\W_][\w'’.,/%-]*", part))) for part in parts]
