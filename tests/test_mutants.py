"""The runner of mutants: every operator changes what it says, and its table of rooms is true."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.client.address import providers
from tests.patience import PATIENCE_SECONDS
from tools.mutants import cases, rooms, session
from tools.mutants.children import DONE, MAX_BYTES, Job, Message, Say, ended
from tools.mutants.operators import mutants

pytestmark = pytest.mark.wide

CHECKOUT = Path(__file__).resolve().parent.parent


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


def test_each_mutant_of_a_module_compiles_to_other_code_and_has_a_name_of_its_own() -> None:
    module = cases.cases_of("harness.runs.lock")
    path = Path(module[0].file)
    right = compile(path.read_text("utf-8"), str(path), "exec")
    assert len({case.name for case in module}) == len(module) > 50
    assert [case.name for case in module if case.code() == right] == []


def test_a_mutant_that_no_test_runs_survives() -> None:
    messages: list[Message] = []
    session.run([], lambda _: 1.0, messages.append)
    assert messages == [{"survived": True}]


def test_a_test_that_runs_no_line_of_the_files_is_measured_too() -> None:
    # In a process of its own: coverage follows one tracer at a time.
    words = "from tools.mutants.session import Tracer; t = Tracer(['none.py']); t.start('test'); print(dict(t.stop()))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", words],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}\n", "")


def test_the_table_of_rooms_names_what_is_there() -> None:
    for room in rooms.ROOMS:
        assert rooms.modules_of(room)
        assert rooms.tests_of_room(room)


def test_a_module_that_is_gone_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rooms.ROOMS, "survey", rooms.Room("runs.no_such_module", "runs"))
    with pytest.raises(rooms.MissingPart, match=r"room survey: no module harness\.runs\.no_such_module"):
        rooms.modules_of("survey")


def test_a_module_that_moved_is_found_by_its_last_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rooms.ROOMS, "survey", rooms.Room("runs.somewhere.journal", "runs"))
    assert rooms.modules_of("survey") == ["harness.runs.journal"]


def test_an_explained_mutant_still_exists_and_has_a_reason() -> None:
    names = {case.name for room in rooms.ROOMS for module in rooms.modules_of(room) for case in cases.cases_of(module)}
    reasons = cases.explained()
    assert sorted(reasons.keys() - names) == [], "the code has changed: look at the mutant again"
    assert [name for name, reason in reasons.items() if len(reason) < 15] == []


def test_what_remembers_its_results_is_found_by_its_file() -> None:
    found = {cache.__wrapped__.__name__ for cache in session.caches_of([providers.__file__])}
    assert found == {"load"}


def draw(say: Say) -> None:
    import vl_convert

    data: dict[str, Any] = {"data": {"values": [{"a": 1}]}, "mark": "point", "encoding": {"x": {"field": "a"}}}
    say({"svg": vl_convert.vegalite_to_svg(data)[:4]})


def fill(say: Say) -> None:
    say({"filled": len(bytearray(MAX_BYTES))})


def print_messages() -> None:
    """Print what a child that draws and one that fills its memory say, as JSON."""
    jobs = [Job("draw", draw, lambda _: PATIENCE_SECONDS), Job("fill", fill, lambda _: PATIENCE_SECONDS)]
    sys.stdout.write(json.dumps({child.key: child.messages for child in ended(iter(jobs), 2)}))


def test_a_child_draws_plots_and_fills_no_more_than_its_memory() -> None:
    # The plot library cannot draw in the fork of a process that has drawn, as this one may have.
    words = [sys.executable, "-c", "from tests.test_mutants import print_messages; print_messages()"]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    messages = json.loads(done.stdout)
    assert messages["draw"] == [{"svg": "<svg"}, DONE]
    assert messages["fill"] == [{"crash": "MemoryError: "}, DONE]
