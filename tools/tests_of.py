"""Prints the test files of a module: `python -m tools.tests_of harness.runs.journal` (a path works, too).

A test file covers the module after which it is named, the modules that it imports (or names in a string, as for
`monkeypatch.setattr`), and the modules that its docstring names in a paragraph that begins with "For: ". A package in
this paragraph means its modules without a test file of their own. `tests/test_house.py` checks that every module has a
test file.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGES = ("harness", "server_launchers", "packages/answers/reasoning_answers", "packages/programs/reasoning_programs")
"""The folders of the packages."""

TESTS = ("tests", "packages/answers/tests", "packages/programs/tests")
_NAMED = re.compile(r"^For: (.+?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)


@cache
def modules() -> Mapping[str, Path]:
    """Dotted name of each module → its file. A package is named without `__init__`."""
    folders = (CHECKOUT / package for package in PACKAGES)
    return {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
    }


def named(tree: ast.Module) -> list[str]:
    """The modules that a test file's docstring names after "For: "."""
    match = _NAMED.search(ast.get_docstring(tree) or "")
    return re.findall(r"[\w.]+\w", match[1]) if match else []


def imported(tree: ast.Module) -> set[str]:
    """The modules that a test file imports or names in a string."""
    imports: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            imports |= inside & modules().keys() or {node.module}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = node.value.split(".")
            imports |= {".".join(parts[:n]) for n in range(2, len(parts) + 1)} if len(parts) < 9 else set()
    return imports & modules().keys()


@cache
def files() -> Mapping[str, tuple[frozenset[str], frozenset[str]]]:
    """Test file → the modules that it imports, and those that its docstring names."""
    paths = [path for folder in TESTS for path in sorted((CHECKOUT / folder).rglob("test_*.py"))]
    trees = {str(path.relative_to(CHECKOUT)): ast.parse(path.read_text("utf-8")) for path in paths}
    return {path: (frozenset(imported(tree)), frozenset(named(tree))) for path, tree in trees.items()}


def tests_of(module: str) -> list[str]:
    """The test files of a module, starting with those named after it; if there are none, the test files of its
    package.
    """
    own = [path for path in files() if _has_name_of(path, module)]
    matching = [path for path, (imports, names) in files().items() if path in own or module in imports | names]
    room = module
    while not matching and "." in room:
        room = room.rpartition(".")[0]
        matching = [path for path, (_, names) in files().items() if room in names]
    return sorted(matching, key=lambda path: (path not in own, path))


def _has_name_of(path: str, module: str) -> bool:
    """Return whether a test file is named after the module and is in the folder of the module's top-level package."""
    first, _, rest = module.removeprefix("harness.").partition(".")
    return bool(rest) and path.endswith(f"_{rest.rpartition('.')[2]}.py") and Path(path).parts[-2] == first


def main() -> None:
    """Print the test files of the module that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tools.tests_of", description="The test files of a module.")
    parser.add_argument("module", help="harness.runs.journal, or harness/runs/journal.py")
    given = parser.parse_args().module
    module = given.removesuffix(".py").removesuffix("/__init__").strip("/").replace("/", ".")
    if module not in modules():
        near = [name for name in modules() if name.endswith(module.rpartition(".")[2])]
        parser.error(f"no module {given}." + (f" Did you mean {', '.join(near)}?" if near else ""))
    sys.stdout.write("".join(f"{path}\n" for path in tests_of(module)))


if __name__ == "__main__":
    main()
