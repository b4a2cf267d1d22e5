"""The runner of mutants: every operator changes what it says, and what no test sees survives."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.mutants.__main__ import survivors
from tools.mutants.operators import mutants

pytestmark = pytest.mark.wide


def changes(source: str) -> set[tuple[str, str, str]]:
    return {(mutant.operator, mutant.before, mutant.after) for mutant in mutants(ast.parse(source))}


@pytest.mark.parametrize(
    ("source", "operator", "before", "after"),
    [
        ("a < b", "compare", "a < b", "a <= b"),
        ("a in b", "compare", "a in b", "a not in b"),
        ("a and b", "boolean", "a and b", "a or b"),
        ("not a", "boolean", "not a", "a"),
        ("a + b", "arithmetic", "a + b", "a - b"),
        ("x = 7", "constant", "7", "6"),
        ("x = 0.5", "constant", "0.5", "0.25"),
        ("x = True", "constant", "True", "False"),
        ("x = [a for a in b if a]", "condition", "for a in b if a", "for a in b if not a"),
        ("def f(): return a", "return", "return a", "return"),
        ("f(a)", "drop", "f(a)", "pass"),
        ("a.b = c", "drop", "a.b = c", "pass"),
        ("f(a, b)", "arguments", "f(a, b)", "f(b, a)"),
        ("while a: break", "jump", "break", "continue"),
        ("a[b:c]", "slice", "b:c", "b + 1:c"),
        ("a[b:]", "slice", "b:", "b:-1"),
        ("min(a)", "extreme", "min(a)", "max(a)"),
        ("def f(a=3): pass", "constant", "3", "4"),
    ],
)
def test_an_operator_makes_its_change(source: str, operator: str, before: str, after: str) -> None:
    assert (operator, before, after) in {(name, *map(str.strip, texts)) for name, *texts in changes(source)}


@pytest.mark.parametrize(
    "source", ["assert a < b", '"text"', "x: Literal[1]", "if TYPE_CHECKING: a()", "x = 'a' + 'b'", "__all__ = [1]"]
)
def test_what_no_test_should_see_is_left_alone(source: str) -> None:
    assert changes(source) == set()


def test_what_no_test_sees_survives_and_nothing_else(tmp_path: Path) -> None:
    for folder in ("changed", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tests/__init__.py").touch()
    (tmp_path / "changed/thing.py").write_text("def is_more(n):\n    return n > 5\n\ndef unseen():\n    return 7\n")
    (tmp_path / "tests/test_thing.py").write_text(
        "from hypothesis import given, strategies\n\nfrom changed.thing import is_more, unseen\n\n"
        "@given(strategies.sampled_from([5, 6]))\ndef test_more(n):\n    assert is_more(n) == (n == 6)\n\n"
        "def test_unseen():\n    unseen()\n"
    )
    alive = survivors(tmp_path, "changed/thing.py", ["tests/test_thing.py"], n=100, seed=0, jobs=2)
    assert [name.partition(": ")[2] for name in alive] == [
        "return: return 7 → return",
        "constant: 7 → 8",
        "constant: 7 → 6",
    ]
