"""Prints the size of the project as one table: `python -m tools.size`.

Code lines exclude docstrings, comments, and blank lines; the rows below each sum are its packages. Words are separated
by white space; generated pages are not counted. This is only a report: no check depends on a count.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
CODE = {
    "product": (
        "harness",
        "server_launchers",
        "packages/answers/reasoning_answers",
        "packages/programs/reasoning_programs",
    ),
    "tests": ("tests", "packages/answers/tests", "packages/programs/tests"),
    "bench, tools": ("bench", "tools"),
}
"""The folders included in each sum of code lines."""
GENERATED_PAGES = CHECKOUT / "docs" / "reference"
NOT_CODE = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


def code_lines(source: str) -> int:
    """Return the number of code lines in a Python file's text."""
    documentation: set[int] = set()
    n_docstrings = 0
    for statement in _statements(ast.parse(source)):
        # A standalone string documents a module, class, or function, or the constant above it.
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            documentation.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
            n_docstrings += 1
    if source.count('"""') + source.count("'''") == 2 * n_docstrings:
        lines = enumerate((line.strip() for line in source.splitlines()), 1)
        code = {number for number, line in lines if line and not line.startswith("#")}
    else:  # A string may contain lines that look blank or like comments; tokenizing is exact but far slower.
        code = set()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type not in NOT_CODE:
                code.update(range(token.start[0], token.end[0] + 1))
    return len(code - documentation)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield all statements below a node."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        children = getattr(node, block, None)
        for child in children if isinstance(children, list) else ():
            yield child
            yield from _statements(child)


def rooms(folder: str) -> Mapping[str, int]:
    """Code lines of the Python files in a folder, by subfolder; the files directly in the folder count together."""
    lines: Counter[str] = Counter()
    for path in sorted((CHECKOUT / folder).rglob("*.py")):
        parts = path.relative_to(CHECKOUT).parts
        depth = 3 if parts[0] == "packages" else 2
        lines["/".join(parts[: min(depth, len(parts) - 1)])] += code_lines(path.read_text("utf-8"))
    return lines


def words_of_docs() -> int:
    """Number of words on the hand-written pages."""
    pages = (path for path in (CHECKOUT / "docs").rglob("*.md") if not path.is_relative_to(GENERATED_PAGES))
    return sum(len(path.read_text("utf-8").split()) for path in pages)


def surface() -> Mapping[str, int]:
    """Number of commands, and of options of `harness run`, including hidden options."""
    import click

    from harness.cli.main import cli

    context = click.Context(cli)
    run = cli.get_command(context, "run")
    assert run is not None
    options = [parameter for parameter in run.params if isinstance(parameter, click.Option)]
    return {"commands": len(cli.list_commands(context)), "options of run": len(options)}


def counted() -> list[tuple[str, int]]:
    """(label, count) for each row of the table; packages are indented below their sum."""
    rows = list[tuple[str, int]]()
    for name, folders in CODE.items():
        lines = {room: n for folder in folders for room, n in rooms(folder).items()}
        rows += [(name, sum(lines.values())), *((f"  {room}", n) for room, n in lines.items())]
    return [*rows, ("words of docs", words_of_docs()), *surface().items()]


def main() -> None:
    """Print the table."""
    rows = counted()
    width = max(len(name) for name, _ in rows)
    for name, count in rows:
        print(f"{name:{width}} {count:10,}")  # noqa: T201


if __name__ == "__main__":
    main()
