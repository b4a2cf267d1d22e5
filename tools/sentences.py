"""Lists the sentences that users can read: pages, examples, templates, cards, help, messages, public docstrings.

    python -m tools.sentences [PATH …] [--draw 100 --seed 2026-11-29] [--docstrings]

prints `file:line<TAB>sentence` for all sentences or a random sample, in the whole repository or in the files below
PATH. Placeholders of f-strings are written as `{…}`. Strings that are not printed, such as keys or patterns, are
recognized by their shape and omitted: they have fewer than four words.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md", "gates/*.md", ".github/**/*.md", ".github/**/*.yml")
CODE = ("harness/**/*.py", "server_launchers/**/*.py")
SCRIPTS = ("harness/viewer/front/*.js",)
TEMPLATES = ("harness/**/*.html",)
FILES = ("datasets/**/*.yaml", "results/published/*.yaml", "harness/**/*.yaml", "examples/**/*.yaml")
SPOKEN = {"about", "by", "judge", "license", "measures", "note", "settings", "text", "title", "traps", "why"}
"""Keys of YAML files whose texts are printed; other keys contain names, addresses, prompts, and answers."""
MIN_WORDS = 4

Sentence = tuple[str, int, str]
"""File, line, words."""

_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\[(—])|\s\|\s|\n\s*(?:[-*]|\d+\.)\s|\n{2,}")
_WORD = re.compile(r"[A-Za-z][a-z']+|\ba\b")


def sentences(text: str, line: int = 1) -> Iterator[tuple[int, str]]:
    """Yield the sentences of `text`, each with the line on which it begins; `text` begins at `line` of its file."""
    place = 0
    for end in [*_END.finditer(text), None]:
        piece = text[place : end.start() if end else len(text)]
        words = " ".join(piece.strip(" |#>-*\n").split())
        if len(_WORD.findall(re.sub(r"`[^`]*`|\]\([^)]*\)|https?://\S+", "", words))) >= MIN_WORDS:
            yield line + text.count("\n", 0, place + len(piece) - len(piece.lstrip())), words
        place = end.end() if end else len(text)


def of_page(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a page, without code blocks and pictures."""
    text = path.read_text("utf-8")
    text = re.sub(r"^( *)```.*?^\1```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    yield from sentences(re.sub(r"!\[[^\]]*\]\([^)]*\)|<!--.*?-->", "", text, flags=re.DOTALL))


def of_file(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a YAML file: comments, texts of printed keys, and answers to other tools' flags."""
    text = path.read_text("utf-8")
    for comment in re.finditer(r"(?:^ *#.*\n?)+", text, re.MULTILINE):
        yield from sentences(
            re.sub(r"^ *# ?", "", comment[0], flags=re.MULTILINE), 1 + text.count("\n", 0, comment.start())
        )
    nodes = [(node, "foreign" in path.parts) for node in yaml.compose_all(text, yaml.SafeLoader)]
    while nodes:
        node, is_spoken = nodes.pop()
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                nodes += [(key, "foreign" in path.parts), (value, key.value in SPOKEN)]
        elif isinstance(node, yaml.SequenceNode):
            nodes += [(each, is_spoken) for each in node.value]
        elif is_spoken:
            yield from sentences(node.value, 1 + node.start_mark.line)


def of_script(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the sentences in the strings of a browser script."""
    text = path.read_text("utf-8")
    for string in re.finditer(r'"[^"\n]*"|`[^`]*`', text):
        words = re.sub(r"\$\{[^}]*\}", "{…}", string[0][1:-1])
        yield from sentences(words, 1 + text.count("\n", 0, string.start()))


def of_template(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the sentences of an HTML template: the texts between its tags and statements."""
    text = re.sub(r"\{\{.*?\}\}", "{…}", path.read_text("utf-8"), flags=re.DOTALL)
    mark = r"\{%.*?%\}|<(?:style|script)\b.*?</(?:style|script)>|</?(?!code\b|b\b|em\b)[^>]*>"
    yield from sentences(re.sub(mark, lambda each: " | " + "\n" * each[0].count("\n"), text, flags=re.DOTALL))


def of_code(path: Path, docstrings: bool) -> Iterator[tuple[int, str]]:
    """Yield the sentences of strings, or of docstrings; the public API's docstrings are also in the generated
    reference.
    """
    tree = ast.parse(path.read_text("utf-8"))
    statements = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    pieces = {id(part) for one in ast.walk(tree) if isinstance(one, ast.JoinedStr) for part in one.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and not docstrings:
            words = "".join(str(p.value) if isinstance(p, ast.Constant) else "{…}" for p in node.values)
            yield from sentences(words, node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
            yield from sentences(node.value, node.lineno) if docstrings == (id(node) in statements) else ()


def catalog(below: list[str], docstrings: bool = False) -> Iterator[Sentence]:
    """Yield all distinct sentences in the order of files and lines; with `docstrings`, those of the code's docstrings
    instead.
    """
    seen: set[str] = set()
    strings = (CODE, lambda path: of_code(path, docstrings))
    for patterns, read in (
        (strings,)
        if docstrings
        else ((PAGES, of_page), (FILES, of_file), (SCRIPTS, of_script), (TEMPLATES, of_template), strings)
    ):
        for path in sorted({path for pattern in patterns for path in CHECKOUT.glob(pattern)}):
            name = path.relative_to(CHECKOUT).as_posix()
            if not below or any(name == one or name.startswith(one.rstrip("/") + "/") for one in below):
                for line, words in read(path):
                    if words not in seen:
                        seen.add(words)
                        yield name, line, words


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="only files at or below PATH, relative to the checkout"
    )
    parser.add_argument("--draw", type=int, metavar="N", help="N sentences at random")
    parser.add_argument("--seed", default="0", help="of the draw")
    parser.add_argument("--docstrings", action="store_true", help="the docstrings of the code instead")
    options = parser.parse_args()
    found = list(catalog(options.paths, options.docstrings))
    if options.draw is not None:
        found = random.Random(options.seed).sample(found, min(options.draw, len(found)))  # noqa: S311 - no secret
    for name, line, words in found:
        print(f"{name}:{line}\t{words}")  # noqa: T201


if __name__ == "__main__":
    main()
