"""The house stays in order: each room says what lives there, and nothing grows beyond what a reader holds in mind."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tools import tests_of

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGES = tests_of.PACKAGES

MAX_LINES = 450
MAX_FUNCTION_LINES = 70
MAX_PARAMETERS = 12
MAX_TEST_NAME = 70

REASON = re.compile(r"^Long: \S.{20,}", re.MULTILINE)
"""A module beyond the bound says in its docstring why, in a line that begins with "Long: "."""


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (CHECKOUT / package).rglob("*.py"))


def rooms() -> list[Path]:
    return [path for path in modules() if path.name == "__init__.py"]


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(CHECKOUT)) for path in paths]


@pytest.mark.parametrize("room", names(rooms()))
def test_a_room_says_what_lives_there_and_who_may_enter(room: str) -> None:
    said = ast.get_docstring(ast.parse((CHECKOUT / room).read_text("utf-8"))) or ""
    assert len(said) > 60, f"{room} needs two sentences: what lives there, and who may enter"


def test_every_place_that_the_architecture_page_names_is_there() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text("utf-8")
    places = re.findall(r"`((?:harness|server_launchers)(?:\.[A-Za-z_]+)+)`", page)
    assert len(places) > 60
    assert [place for place in places if not _is_there(place)] == []
    assert not _is_there("harness.commands.nowhere")
    assert not _is_there("harness.client.request_builder.Nobody")


def _is_there(place: str) -> bool:
    """Whether `place` is a package, a module, or a name in one."""
    try:
        pkgutil.resolve_name(place)
    except (ImportError, AttributeError):
        return False
    return True


def test_the_architecture_page_lists_every_room() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text("utf-8")
    found = {name for name, path in tests_of.modules().items() if path.name == "__init__.py"}
    assert sorted(name for name in found - set(PACKAGES[:1]) if f"`{name}`" not in page) == []


def test_a_long_module_says_why() -> None:
    long = [path for path in modules() if len(path.read_text("utf-8").splitlines()) > MAX_LINES]
    unexplained = [p for p in long if not REASON.search(ast.get_docstring(tree_of(p)) or "")]
    assert names(unexplained) == []


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of the file's tree: several tests look at each of them."""
    return list(ast.walk(tree_of(path)))


def functions(nodes: list[ast.AST]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def too_long(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function has more lines, its docstring among them, or more parameters than the bounds."""
    assert function.end_lineno is not None
    given = function.args
    n_parameters = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
    return function.end_lineno - function.lineno + 1 > MAX_FUNCTION_LINES or n_parameters > MAX_PARAMETERS


def test_functions_fit_a_screen_and_take_few_parameters() -> None:
    found = {
        f"{names([path])[0]} {one.name}" for path in modules() for one in functions(nodes_of(path)) if too_long(one)
    }
    assert sorted(found) == [], "split it, or make a value of its parameters"


def test_names_of_tests_are_short_sentences() -> None:
    files = [path for folder in tests_of.TESTS for path in (CHECKOUT / folder).rglob("test_*.py")]
    tests = (name for path in files for name in re.findall(r"\bdef (test_\w+)", path.read_text("utf-8")))
    assert sorted(name for name in tests if len(name) > MAX_TEST_NAME) == []


def test_a_class_name_stands_for_one_thing() -> None:
    count = Counter(node.name for path in modules() for node in nodes_of(path) if isinstance(node, ast.ClassDef))
    twice = {name for name, n_classes in count.items() if n_classes > 1}
    assert twice - {"Transport", "Request", "Forecast"} == set(), "name it for what it holds; see the others"


def test_a_documented_constant_has_a_subject() -> None:
    """Its sentence begins with the noun that it is: not "What stands between …" but "The characters between …"."""
    without = re.compile(r'[^:]\n *"""(?:Of|What|They|So|It) ')  # a colon before it: of a function or a class
    assert names([path for path in modules() if without.search(path.read_text("utf-8"))]) == []
    assert without.search('A = 1\n"""Of all."""')


def test_one_number_has_the_same_digits_wherever_it_is_printed() -> None:
    """61.25 is rounded to 61.2 or 61.3 by how it was computed, so `harness.core.number_text` alone prints percents."""
    rounding = re.compile(r"\{-?100 \* [^{}]*:[+z]*\.1f\}")
    printing = [path for path in modules() if rounding.search(path.read_text("utf-8"))]
    # In `columns` one of the two numbers is a published percent.
    assert names(printing) == ["harness/sweeps/columns.py"]
    assert rounding.search("{-100 * paired.difference:+z.1f}")


@pytest.mark.wide
@pytest.mark.slow
def test_the_tests_of_any_module_are_found_in_one_step() -> None:
    """By `python -m tools.tests_of MODULE`: a test file imports the module, or its docstring names it, or its room."""
    every = tests_of.modules()
    assert [name for name, path in every.items() if path.name != "__init__.py" and not tests_of.tests_of(name)] == []
    named = [f"{path}: {name}" for path, (_, names) in tests_of.files().items() for name in names if name not in every]
    assert named == []


@pytest.mark.wide
@pytest.mark.slow
def test_who_names_a_module_is_found_before_who_names_its_room() -> None:
    docstring = '"""About.\n\nFor: harness.runs, harness.core.sanitize.\n"""\n'
    assert tests_of.named(ast.parse(docstring)) == ["harness.runs", "harness.core.sanitize"]
    assert "harness.cli.run" in tests_of.imported(ast.parse('x = "harness.cli.run.y"'))
    assert tests_of.tests_of("harness.runs.lock")[0] == "tests/runs/test_runs_lock.py"
    assert tests_of.tests_of("harness.runs.a_new_one") == ["tests/runs/test_runs_journal.py"]


def test_the_counting_counts() -> None:
    long, wide = "    pass\n" * MAX_FUNCTION_LINES, ", ".join(f"a{n}" for n in range(MAX_PARAMETERS + 1))
    texts = ("def f(a, *, b): pass", f"def f():\n{long}", f"def f({wide}): pass")
    assert [too_long(one) for text in texts for one in functions([*ast.walk(ast.parse(text))])] == [False, True, True]
