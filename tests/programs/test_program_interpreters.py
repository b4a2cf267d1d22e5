"""The interpreters of a model's tool: what a call is told, what stays from call to call, and that nothing else does.

For: harness.extensions.answers.program.interpreters, harness.extensions.answers.program.inside.served.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import psutil
import pytest

from harness.core.errors import UsageError
from harness.extensions.answers.program import bubblewrap
from harness.extensions.answers.program.inside.served import Printed
from harness.extensions.answers.program.interpreters import Interpreters
from harness.presets.tool import PythonTool, code_of, recorded, tool_of
from tests.budget import thinned
from tests.patience import until
from tests.programs.sandboxed import needs_sandbox
from tests.programs.test_program_hostile import PAYLOADS

pytestmark = needs_sandbox
TOOL = PythonTool(seconds=1, characters=200, memory_mb=512)


def alive(*states: str) -> set[psutil.Process]:
    """Children that live, in one of these states or in any; one may end while it is looked at."""
    children = set[psutil.Process]()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if (state := child.status()) in states or not (states or state == psutil.STATUS_ZOMBIE):
                children.add(child)
    return children


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    before = alive()
    kept = Interpreters(TOOL, 2)
    yield kept
    kept.close()
    assert alive() <= before, "an interpreter is left"


TOLD = {
    "printed, then the value": ("print('a')\n6*7", "ran", "a\n42"),
    "no value": ("y = 1", "ran", "[no output]"),
    "None is no value": ("print(end='')", "ran", "[no output]"),
    "both streams in order": ("import sys\nprint(1)\nprint(2, file=sys.stderr)\nprint(3)", "ran", "1\n2\n3\n"),
    "exception": ("def f(): return 1/0\nf()", "failed", "return 1/0"),
    "no Python": ("def f(:", "failed", "SyntaxError"),
    "exit": ("import sys\nsys.exit(3)", "failed", "SystemExit: 3"),
    "packages": ("import numpy, sympy, mpmath\nsympy.factorint(2**4 * 3)", "ran", "{2: 4, 3: 1}"),
    "no input": ("input()", "failed", "EOFError"),
    "long": ("print('a' * 100 + 'b' * 1000 + 'c' * 100)", "ran", "1,001 characters left out"),
    "1 GB": ("for _ in range(1000): print('z' * 1_000_000)", "stopped", "characters left out"),
    "loop": ("print('begun')\nwhile True: pass", "stopped", "begun\n\n[stopped after 1 s of processor time"),
    "sleep": ("import time\ntime.sleep(99)", "stopped", "stopped after 1 s of waiting"),
    "end": ("import os\nos._exit(0)", "stopped", "[the interpreter ended"),
    "closed": ("import os, sys\nsys.stdout.close()\nos.close(1)\nos.close(2)\n6*7", "ran", "42"),
    "lone surrogate": ("'\\ud800'", "ran", "ud800"),
    "surrogate printed": ("class A:\n    def __repr__(self): return 'é\\udc80'\nA()", "ran", "é\\udc80"),
    "bad repr": ("class A:\n    def __repr__(self): return 1/0\nA()", "failed", "ZeroDivisionError"),
}  # fmt: skip


@pytest.mark.parametrize("case", TOLD)
def test_a_call_is_told_what_it_printed_and_how_it_ended(interpreters: Interpreters, case: str) -> None:
    code, end, part = TOLD[case]
    interpreters.run(case, "kept = 6")
    output, ended, seconds = interpreters.run(case, code)
    # A fast machine writes a gigabyte within its second.
    assert ended == end or case == "1 GB"
    assert part in output
    output.encode()  # a model's server takes it
    assert 0 <= seconds < 2 * TOOL.seconds
    assert interpreters.run(case, "kept")[0] == "6", "the variables of earlier calls"
    interpreters.forget(case)


@pytest.mark.parametrize("name", thinned(sorted(PAYLOADS)))
def test_hostile_code_is_told_how_it_ended_and_disturbs_no_call(interpreters: Interpreters, name: str) -> None:
    interpreters.run("other", "kept = 7")
    interpreters.run(name, "kept = 6")
    _, ended, _ = interpreters.run(name, PAYLOADS[name])
    assert ended in ("ran", "failed", "stopped")
    assert (interpreters.run(name, "kept")[0], interpreters.run("other", "kept")[0]) == ("6", "7")
    interpreters.forget(name)


def test_between_calls_an_interpreter_stands_still(interpreters: Interpreters) -> None:
    spin = "import threading\nn = [0]\ndef spin():\n    while True: n[0] += 1\nthreading.Thread(target=spin).start()"
    before = alive()
    assert interpreters.run("idle", spin)[1] == "ran"
    until(lambda: alive(psutil.STATUS_STOPPED) - before, "it to stand still while nobody calls")
    assert int(interpreters.run("idle", "n[0]")[0]) > 0
    interpreters.forget("idle")


def test_the_interpreter_idle_longest_ends_and_its_calls_run_again(interpreters: Interpreters) -> None:
    draw = "import random, numpy\nr = random.random(), float(numpy.random.rand())\nr"
    drawn = {name: interpreters.run(name, draw)[0] for name in ("a", "b", "c", "d")}
    assert len({*drawn.values()}) == 1, "equal calls give equal numbers"
    for name in ("d", "a", "c", "b", "a"):
        interpreters.run(name, f"seen = {name!r}")
        assert interpreters.run(name, "r, seen")[0] == f"({drawn[name]}, {name!r})"
    assert len(interpreters._slots) == 2


def test_many_samples_share_few_interpreters(interpreters: Interpreters) -> None:
    wrong = []

    def sample(number: int) -> None:
        for step in range(3):
            interpreters.run(number, f"total = {number} + {step}")
        if interpreters.run(number, "total")[0] != str(number + 2):
            wrong.append(number)

    threads = [threading.Thread(target=sample, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_sandbox_that_dies_is_replaced_and_the_call_runs() -> None:
    interpreters = Interpreters(TOOL, 1)
    interpreters.run(1, "kept = 6")
    interpreters._slots[0].cell.kill()
    assert interpreters.run(1, "kept")[0] == "6"
    interpreters.close()


def test_a_sandbox_without_the_packages_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "_folders_of", lambda _: iter(()))
    with pytest.raises(UsageError, match=r"numpy and sympy and mpmath are not in the sandbox .*,sandbox=docker:IMAGE"):
        Interpreters(TOOL, 1).facts()


def test_the_option_says_the_limits_and_refuses_all_else() -> None:
    tool = tool_of("python, steps=8,seconds=10,sandbox=docker:my/image:1")
    assert tool == PythonTool(steps=8, seconds=10, sandbox="docker:my/image:1")
    assert recorded({"tool": tool.identity}) == PythonTool(steps=8, seconds=10)
    assert (tool_of(None), tool_of("none"), recorded({})) == (None, None, None)
    for text in ("", "perl", "python,8", "python,steps=0", "python,steps=1e3", "python,second=1", "python;steps=1"):
        with pytest.raises(ValueError, match="expected"):
            tool_of(text)
    assert [code_of(text) for text in ('{"code": "1"}', "print(1)")] == ["1", "print(1)"]
    for text in ("", " ", "{", '{"code": 1}', '{"kode": "1"}', '{"code":"print(6*7)"'):
        with pytest.raises(ValueError):
            code_of(text)


def test_the_middle_of_a_long_output_is_left_out() -> None:
    for n in range(30):
        shown = Printed(10)
        for character in "abcdefghijklmnopqrstuvwxyzäöü"[:n]:
            shown.add(character)
        whole = "abcdefghijklmnopqrstuvwxyzäöü"[:n]
        expected = whole if n <= 10 else f"{whole[:5]}\n[… {n - 10} characters left out …]\n{whole[-5:]}"
        assert shown.text == expected
