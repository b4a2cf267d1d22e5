"""Counts the project beside its caps, as one table: `python -m tools.size`.

Code lines are lines without docstrings, comments and blank lines. Words are parted by white space; pages that are
generated do not count. Helpers are the code of the tests in files that hold no tests. The caps stand in
`.ci/size.toml`: anyone may lower one, to what was reached. Exit code 1 if a count is above its cap.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

CHECKOUT = Path(__file__).resolve().parent.parent
CAPS = CHECKOUT / ".ci" / "size.toml"
COUNTED = ("harness", "server_launchers", "tests", "bench", "tools")
GENERATED_PAGES = CHECKOUT / "docs" / "reference"
NOT_CODE = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


class CodeCap(BaseModel):
    """Most code lines of some folders and files; a folder below one of another cap counts there alone."""

    model_config = ConfigDict(extra="forbid")

    cap: int
    places: list[str]


class Caps(BaseModel):
    """The caps: name of a group → its lines of code, name of another count → its largest value."""

    model_config = ConfigDict(extra="forbid")

    code: dict[str, CodeCap]
    other: dict[str, float]


def read_caps() -> Caps:
    """The caps of `.ci/size.toml`."""
    return Caps.model_validate(tomllib.loads(CAPS.read_text("utf-8")))


def code_lines(source: str) -> int:
    """Number of code lines of a Python file's text."""
    documentation: set[int] = set()
    n_docstrings = 0
    for statement in _statements(ast.parse(source)):
        # A string that stands alone documents a module, class or function, or the constant above it.
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            documentation.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
            n_docstrings += 1
    if source.count('"""') + source.count("'''") == 2 * n_docstrings:
        lines = enumerate((line.strip() for line in source.splitlines()), 1)
        code = {number for number, line in lines if line and not line.startswith("#")}
    else:  # A string may hold lines that look blank or like comments: tokens tell, but take far longer.
        code = set()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type not in NOT_CODE:
                code.update(range(token.start[0], token.end[0] + 1))
    return len(code - documentation)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements below a node."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        children = getattr(node, block, None)
        for child in children if isinstance(children, list) else ():
            yield child
            yield from _statements(child)


def files() -> Iterator[str]:
    """The Python files of the checkout that are counted."""
    for folder in COUNTED:
        yield from (path.relative_to(CHECKOUT).as_posix() for path in sorted((CHECKOUT / folder).rglob("*.py")))


def lines_of_files() -> Mapping[str, int]:
    """Each of these files → its code lines."""
    return {path: code_lines((CHECKOUT / path).read_text("utf-8")) for path in files()}


def group_of(path: str, caps: Caps) -> str:
    """The group that counts a file: the one whose place is the longest beginning of its path; '' for none."""
    places = [(len(place), name) for name, row in caps.code.items() for place in row.places if _is_in(path, place)]
    return max(places, default=(0, ""))[1]


def _is_in(path: str, place: str) -> bool:
    """Whether the path is the place, or below it."""
    return path == place or path.startswith(f"{place}/")


def words_of_docs() -> int:
    """Words of the pages that people wrote."""
    pages = (path for path in (CHECKOUT / "docs").rglob("*.md") if not path.is_relative_to(GENERATED_PAGES))
    return sum(len(path.read_text("utf-8").split()) for path in pages)


def surface() -> Mapping[str, int]:
    """Number of commands, and of options of `harness run`, hidden ones among them."""
    import click

    from harness.cli.main import cli

    context = click.Context(cli)
    run = cli.get_command(context, "run")
    assert run is not None
    options = [parameter for parameter in run.params if isinstance(parameter, click.Option)]
    return {"commands": len(cli.list_commands(context)), "options of run": len(options)}


def counted() -> list[tuple[str, float, float]]:
    """(what, its count, its cap) of each row of the table."""
    caps, lines = read_caps(), lines_of_files()
    groups = {path: group_of(path, caps) for path in lines}
    sums = {name: sum(n for path, n in lines.items() if groups[path] == name) for name in caps.code}
    rows = [(name, sums[name], float(row.cap)) for name, row in caps.code.items()]
    tests = {path: n for path, n in lines.items() if _is_in(path, "tests")}
    helpers = sum(n for path, n in tests.items() if not path.rpartition("/")[2].startswith("test_"))
    others: dict[str, float] = {"words of docs": words_of_docs(), **surface()}
    others["helpers, % of the tests' code"] = round(100 * helpers / sum(tests.values()), 1)
    return [*rows, *((name, others[name], cap) for name, cap in caps.other.items())]


def main() -> int:
    """Print the table; 1 if a count is above its cap."""
    rows = counted()
    width = max(len(name) for name, _, _ in rows)
    for name, count, cap in rows:
        over = f"  {count - cap:,g} above" if count > cap else ""
        print(f"{name:{width}} {count:10,}   cap {cap:10,g}{over}")  # noqa: T201
    return int(any(count > cap for _, count, cap in rows))


if __name__ == "__main__":
    sys.exit(main())
