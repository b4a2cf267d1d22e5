"""Each way to be right or wrong, in the real sandbox, beside its twin.

For: reasoning_programs.sandbox_source, reasoning_programs.inside.confinement, reasoning_programs.inside.test_process,
reasoning_programs.inside.cell, reasoning_programs.inside.values, reasoning_programs.errors, reasoning_programs.text.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from sandboxed import called, cell, checked, needs_sandbox, script

from reasoning_programs import bubblewrap, cells
from reasoning_programs.cells import SandboxCell
from reasoning_programs.inside.process_limits import LimitedProcess

pytestmark = needs_sandbox
__all__ = ["cell"]

DOUBLE = ("21\n", "42\n")


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("print(2 * int(input()))", "all tests"),
        ("import sys\nprint(2 * int(sys.stdin.read()))\nsys.exit(3)", "all tests"),
        ("print('  42 ')\nprint()", "all tests"),
        ("print(42.0)", "all tests"),
        ("print(42.5)", "wrong output"),
        ("print(43)", "wrong output"),
        ("print(42)\nprint(42)", "wrong output"),
        ("", "wrong output"),
        ("print(42)\n1 / 0", "exception"),
        ("def", "exception"),
        ("while True: pass", "time limit"),
        ("x = [0]\nwhile True: x *= 2", "memory limit"),
        ("while True: print('x' * 100_000)", "output limit"),
        ("import os\nos._exit(3)", "exception"),
        ("import atexit\natexit.register(lambda: print(42))", "all tests"),
        ("import threading\nthreading.Thread(target=lambda: print(42)).start()", "all tests"),
        ("def f(n): return n and 1 + f(n - 1)\nprint(f(9_000) - 8_958)", "all tests"),
        ("import sys\nsys.stderr.write('x' * 20_000_000)\nprint(2 * int(input()))", "all tests"),
        ("import sys\nsys.stderr.write('x' * 20_000_000)\nprint(43)", "wrong output"),
        ("open('x', 'w').write('42')\nprint(open('x').read())", "all tests"),
    ],
)
def test_a_whole_program(cell: SandboxCell, code: str, rule: str) -> None:
    decision = script(cell, code, DOUBLE)
    assert decision.rule == rule
    assert decision.outcome == ("correct" if rule == "all tests" else "wrong")


def test_sleeping_ends_a_program_and_waiting_a_little_does_not(cell: SandboxCell) -> None:
    for seconds, rule in ((0.3, "all tests"), (60, "sleep limit")):
        assert script(cell, f"import time\ntime.sleep({seconds})\nprint(42)", DOUBLE).rule == rule


def test_the_first_failing_test_is_told_with_what_came(cell: SandboxCell) -> None:
    decision = script(cell, "print(max(0, int(input())))", ("3", "3"), ("-1", "1"), ("-2", "2"))
    assert decision.failure is not None
    assert decision.failure.test == 2
    assert decision.failure.steps == ("test 2 was the first to fail", "input: -1", "expected: 1", "came: 0\\n")


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("def f(a, b): return [a, b]", "all tests"),
        ("class Solution:\n    def f(self, a, b): return (a, b)", "all tests"),
        ("def f(a, b): return [b, a]", "wrong output"),
        ("def g(a, b): return [a, b]", "exception"),
        ("def f(a, b): raise ValueError", "exception"),
        ("def f(a, b): exit()", "wrong output"),
        ("def f(a, b):\n    while True: pass", "time limit"),
        ("class Same:\n    def __eq__(self, other): return True\ndef f(a, b): return Same()", "wrong output"),
        ("def f(a, b): return ([a, b], [a, b])[0]", "all tests"),
        ("def f(a, b):\n    import os\n    os._exit(0)", "ended"),
    ],
)
def test_calls_of_a_function(cell: SandboxCell, code: str, rule: str) -> None:
    decision = called(cell, code, ("1\n[2]", "[1, [2]]"), ("null\n0.5", "[null, 0.5]"))
    assert decision.rule == rule or (rule == "wrong output" and decision.outcome == "wrong")
    assert (decision.outcome == "correct") == (rule == "all tests")


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("def f(x): return x + 1", "correct"),
        ("def f(x): return x", "wrong"),
        ("import os\nos._exit(0)", "wrong"),
        ("def f(x): raise SystemExit(0)", "wrong"),
        ("class Same:\n    def __eq__(self, other): return True\ndef f(x): return Same()", "wrong"),
        ("import builtins\nbuiltins.AssertionError = None\ndef f(x): return x", "wrong"),
        ("def f(x): return x\ndef check(candidate): pass", "wrong"),
        ("def f(x): return 10 ** 400", "wrong"),
        ("def f(x): return f(x)", "wrong"),
    ],
)
def test_test_code(cell: SandboxCell, code: str, outcome: str) -> None:
    check = "def check(candidate):\n    assert candidate(1) == 2\n    assert candidate(2) == 3\n\ncheck(f)\n"
    assert checked(cell, code, check).outcome == outcome


VALUES = "(1, 'ä\\ud800', 2.5, None, True, 3j, b'x', {1, 2}, frozenset((1,)), {(1, 2): [3]}, 2 ** 100, float('inf'))"
SAME = f"assert f() == {VALUES} and all(type(a) is type(b) for a, b in zip(f(), {VALUES}))"
PAIR = (
    "class Pair:\n    def __init__(self, a): self.a = a\n    def __len__(self): return 0\n"
    "def f(p): return p.a\npair = Pair(3)"
)
KEY_ERROR = "try:\n    f()\nexcept KeyError:\n    pass\nelse:\n    assert False"
NEAR = "assert math.isclose(f(10), 4188.79, rel_tol=0.001)"
BALL = "def f(r): return 4 / 3 * 3.14159265 * r ** 3"
FAKE = "class math:\n    isclose = staticmethod(lambda *a, **k: True)\n"
LOOP = "assert all(map(lambda x: f(x) == x, [1, 2]))"
NODE = "class Node:\n    def __init__(self, value): self.value = value\n"
TREE = "root = Node(1)\nroot.left = Node(2)"
DATACLASS = (
    "from __future__ import annotations\nfrom dataclasses import dataclass\n\n"
    "@dataclass\nclass P:\n    x: int\n\ndef f(x): return P(x).x\n"
)
ONE, TWO = "class One: pass\none = One()\ndef f(): return one", "class One: pass\ndef f(): return One()"
HANDED = "def double(x): return 2 * x\ndef f(function, x): return function(x) if callable(function) else 0"
MUCH = "import sys\nfor _ in range(2_000): sys.stderr.write('x' * 1_000)\nsys.stderr.flush()\nassert f(1) == 2"
CATCHES = "try: f(1)\nexcept: pass"


@pytest.mark.parametrize(
    ("code", "checks", "setup", "rule"),
    [
        # Values keep their types on their way to the tests.
        (f"def f(): return {VALUES}", [SAME], "", "all tests"),
        (f"def f(): return list({VALUES})", [SAME], "", "wrong output"),
        ("def f(): return {1: 2}.values()", ["assert list(f()) == [2]"], "", "all tests"),
        ("def f(): return {1: 3}.values()", ["assert list(f()) == [2]"], "", "wrong output"),
        ("def f(): return range(10 ** 30)", ["assert f()[7] == 7"], "", "all tests"),
        ("def f(): return range(10 ** 30)", ["assert sum(f()) == 7"], "", "exception"),
        ("def f(n): return 10 ** n", ["assert f(60_000) == 10 ** 60_000"], "", "all tests"),
        ("def f(n): return 10 ** n", ["assert f(60_000) == 10 ** 60_000 + 1"], "", "wrong output"),
        # Objects of the program stay in it, and can be handed back; an empty thing is false, as the program has it.
        (PAIR, ["p = Pair(3)", "assert f(p) == 3", "p.a = 4", "assert f(p) == 4"], "", "all tests"),
        (PAIR, ["assert Pair(3)"], "", "wrong output"),
        (PAIR, ["assert Pair(3) == 3"], "", "wrong output"),
        (PAIR, ["assert f(pair) == 3"], "", "exception"),
        ("def f(): return (i for i in [1, 2])", ["assert list(f()) == [1, 2]"], "", "all tests"),
        *(
            (ONE, [check], "", "all tests")
            for check in ("assert f() == f()", "assert f() is f()", "assert f() in {f()}")
        ),
        *((TWO, [check], "", "wrong output") for check in ("assert f() == f()", "assert f() in {f()}")),
        (HANDED, ["assert f(double, 2) == 4"], "", "all tests"),
        (HANDED, ["assert f(double, 2) == 5"], "", "wrong output"),
        (HANDED, ["assert f(lambda x: x, 2) == 2"], "", "broken tests"),
        (HANDED, ["try: f(print, x=2)\nexcept: pass"], "", "broken tests"),
        # An exception keeps its class where the language has it, and never ends a loop of the tests.
        ("def f(): return {}[1]", [KEY_ERROR], "", "all tests"),
        ("def f(): return [][1]", [KEY_ERROR], "", "exception"),
        ("def f(): return 1", [KEY_ERROR], "", "wrong output"),
        ("def f(x): return x", [LOOP], "", "all tests"),
        ("def f(x): raise StopIteration", [LOOP], "", "exception"),
        ("def f(x): raise ValueError", [CATCHES], "", "all tests"),
        ("import os\ndef f(x): os._exit(0)", [CATCHES], "", "ended"),
        # A standard module that the tests do not import is never the program's.
        (BALL, [NEAR], "", "all tests"),
        ("import math\n" + BALL, [NEAR], "", "all tests"),
        (FAKE + BALL, [NEAR], "", "all tests"),
        (FAKE + "def f(r): return 0", [NEAR], "", "wrong output"),
        # Setup may use what the program defines.
        (NODE + "def f(root): return root.left.value", ["assert f(root) == 2"], TREE, "all tests"),
        (NODE + "def f(root): return root.value", ["assert f(root) == 2"], TREE, "wrong output"),
        ("def f(root): return 2", ["assert f(root) == 2"], TREE, "exception"),
        (NODE + "def f(root): return 2", ["assert f(root) == 2"], "1 / 0", "broken tests"),
        (DATACLASS, ["assert f(1) == 1"], "", "all tests"),
        (DATACLASS, ["assert f(1) == 2"], "", "wrong output"),
        # Broken tests say nothing of the program; those that write much are not stopped by it.
        ("def f(): return 1", ["assert f( == 1"], "", "broken tests"),
        ("def f(): return 1", ["import no_such_package\nassert f() == 1"], "", "broken tests"),
        ("def f(): import no_such_package", ["assert f() == 1"], "", "exception"),
        ("def f(x): return x + 1", [MUCH], "", "all tests"),
        ("def f(x): return x", [MUCH], "", "wrong output"),
    ],
)
def test_test_code_and_the_objects_of_the_program(
    cell: SandboxCell, code: str, checks: list[str], setup: str, rule: str
) -> None:
    decision = checked(cell, code, *checks, setup=setup)
    expected = {"all tests": "correct", "broken tests": "undecided"}.get(rule, "wrong")
    assert (decision.rule, decision.outcome) == (rule, expected)


@pytest.mark.parametrize(
    "value",
    [
        "range(3)",
        "range(9, 0, -2)",
        "{1: 2}.keys()",
        "{1: [2]}.items()",
        "date(2024, 2, 29)",
        "datetime(2024, 2, 29, 1, 2, 3, 4, timezone.utc)",
        "time(1, 2, 3)",
        "timedelta(-1, 2, 3)",
        "b'\\x00\\xff'",
        "1 + 2.5j",
        "Decimal('0.10')",
        "Fraction(-1, 3)",
        "2 ** 80",
        "deque([1])",
        "frozenset({1})",
    ],
)
def test_ordinary_values_cross_as_they_are(cell: SandboxCell, value: str) -> None:
    header = "from collections import deque\nfrom datetime import *\nfrom decimal import Decimal\n"
    header += "from fractions import Fraction\n"
    code = header + f"def f(x): return {value} if x == {value} else None"
    check = header + f"assert f({value}) == {value} and type(f({value})) is type({value})"
    assert checked(cell, code, check).outcome == "correct"
    assert checked(cell, header + f"def f(x): return [{value}]", check).outcome == "wrong"


def test_blank_lines_are_no_arguments(cell: SandboxCell) -> None:
    for result, outcome in (("1", "correct"), ("2", "wrong")):
        assert called(cell, f"def f(): return {result}", ("", "1")).outcome == outcome
        assert called(cell, f"def f(a, b): return a + b + {result} - 1", ("1\n2\n", "3")).outcome == outcome


def test_tests_that_end_their_process_are_undecided_at_once(cell: SandboxCell) -> None:
    begun = time.monotonic()
    decision = checked(cell, "def f(x): return x", "import os\nos._exit(0)")
    assert (decision.outcome, decision.rule) == ("undecided", "sandbox")
    assert time.monotonic() - begun < 60
    assert checked(cell, "def f(x): return x", "assert f(1) == 1").outcome == "correct"


def test_a_sandbox_may_be_silent_for_longer_where_there_are_many_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "SILENCE_SECONDS", 0.4)
    monkeypatch.setattr(cells, "SILENCE_FACTOR", 0.001)
    asleep = "import time\ndef f(x):\n    time.sleep({})\n    return x"
    for seconds, n, outcome in ((0.03, 60, "correct"), (90, 1, "undecided")):
        hurried = SandboxCell(bubblewrap)
        assert called(hurried, asleep.format(seconds), *[("1", "1")] * n, seconds=100.0).outcome == outcome
        hurried.close()


def test_waiting_for_a_processor_is_no_sleep(tmp_path: Path) -> None:
    program = LimitedProcess()
    program.limits = {"cpu": 9.0, "sleep": 0.2}
    for waits, over in ((True, ""), (False, "sleep limit")):
        clock = tmp_path / f"{waits}"
        clock.write_text("0 1000000000 0")
        program._own_schedstat = os.open(clock, os.O_RDONLY)
        program.start_clock()
        clock.write_text(f"0 {1_000_000_000 + 250_000_000 * waits} 0")
        program._since = time.monotonic() - 0.3
        assert program.over() == over
        os.close(program._own_schedstat)
