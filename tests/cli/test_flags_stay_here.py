"""No text below the command line names a flag: sentences name options, and `harness.cli` alone spells them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness

PACKAGE = Path(harness.__file__).parent
SANDBOXES = {PACKAGE / "extensions" / "answers" / "program" / name for name in ("bubblewrap.py", "containers.py")}
"""They write the command lines of bubblewrap, docker and podman, whose flags are not ours."""
BELOW = sorted(set(PACKAGE.rglob("*.py")) - set((PACKAGE / "cli").rglob("*.py")) - SANDBOXES)
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
OTHERS = {"--data-raw"}
"""Of another program: curl's, in the command that repeats a request."""


def named_flags(source: str) -> Iterator[tuple[int, str]]:
    """(line, flag) of every flag in the string literals of a module, docstrings and f-strings included."""
    if FLAG.search(source) is None:
        return  # at once: most files name none, and it takes long to parse all
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((node.lineno, flag) for flag in FLAG.findall(node.value) if flag not in OTHERS)


@pytest.mark.parametrize("path", BELOW, ids=[str(path.relative_to(PACKAGE)) for path in BELOW])
def test_no_text_names_a_flag(path: Path) -> None:
    assert list(named_flags(path.read_text("utf-8"))) == []


def test_the_scan_sees_flags_wherever_they_stand() -> None:
    source = '"""Doc: `--out`."""\nx = f"raise --max-tokens of {y}"\nz = "a -- b --- c x--y"\n'
    assert list(named_flags(source)) == [(1, "--out"), (2, "--max-tokens")]
