"""The house stays in order: each room says what lives there, and nothing grows beyond what a reader holds in mind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGES = ("harness", "server_launchers")

MAX_LINES = 450
MAX_ATTRIBUTES = 25
REASON = re.compile(r"^(Long|Wide): \S.{20,}", re.MULTILINE)
"""A module or class beyond the bound says in its docstring why: a line that begins with "Long: " or "Wide: "."""


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (CHECKOUT / package).rglob("*.py"))


def rooms() -> list[Path]:
    return [path for path in modules() if path.name == "__init__.py"]


def classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def attributes(of: ast.ClassDef) -> set[str]:
    """Names that instances hold: annotated in the body, or set on `self` in a method."""
    found = {
        node.target.id
        for node in of.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and "ClassVar" not in ast.dump(node)
    }
    for method in (node for node in of.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        for node in ast.walk(method):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
                found |= {node.attr} if node.value.id == "self" else set()
    return found


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(CHECKOUT)) for path in paths]


@pytest.mark.parametrize("room", names(rooms()))
def test_a_room_says_what_lives_there_and_who_may_enter(room: str) -> None:
    said = ast.get_docstring(ast.parse((CHECKOUT / room).read_text("utf-8"))) or ""
    assert len(said) > 60, f"{room} needs two sentences: what lives there, and who may enter"


def test_the_architecture_page_lists_every_room() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text("utf-8")
    found = {str(path.parent.relative_to(CHECKOUT)).replace("/", ".") for path in rooms()}
    assert sorted(name for name in found - set(PACKAGES[:1]) if f"`{name}`" not in page) == []


def test_a_long_module_says_why() -> None:
    long = [path for path in modules() if len(path.read_text("utf-8").splitlines()) > MAX_LINES]
    unexplained = [p for p in long if not REASON.search(ast.get_docstring(ast.parse(p.read_text("utf-8"))) or "")]
    assert names(unexplained) == []


def test_a_class_of_many_attributes_says_why() -> None:
    wide = [
        f"{path.relative_to(CHECKOUT)}: {one.name} has {len(attributes(one))} attributes"
        for path in modules()
        for one in classes(ast.parse(path.read_text("utf-8")))
        if len(attributes(one)) > MAX_ATTRIBUTES and not REASON.search(ast.get_docstring(one) or "")
    ]
    assert wide == []


def test_the_counting_counts() -> None:
    source = "class A:\n    x: int\n    def f(self):\n        self.y = self.x = 1\n        self.z.w = 2\n"
    assert attributes(next(classes(ast.parse(source)))) == {"x", "y"}
