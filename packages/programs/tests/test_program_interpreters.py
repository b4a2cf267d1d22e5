"""The interpreters of a model's tool: what a call is told, what stays from call to call, and that nothing else does.

For: reasoning_programs.interpreters, reasoning_programs.inside.program_process.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Hashable, Iterator
from typing import Any

import psutil
import pytest
from sandboxed import PATIENCE_SECONDS, needs_packages, needs_sandbox, until
from test_program_hostile import PAYLOADS

from reasoning_programs import LostError, UnavailableError, bubblewrap, cells
from reasoning_programs.inside.program_process import Printed
from reasoning_programs.interpreters import LOST, Interpreters

pytestmark = needs_sandbox
LIMITS = {"seconds": 1, "characters": 200, "memory_mb": 512}


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
    kept = Interpreters(**LIMITS)
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
    "deaf": ("def f():\n    while 1: pass\nwhile 1:\n    try: f()\n    except BaseException: 0", "stopped", "1 s of p"),
    "end": ("import os\nos._exit(0)", "stopped", "[the interpreter ended"),
    "closed": ("import os, sys\nsys.stdout.close()\nos.close(1)\nos.close(2)\n6*7", "ran", "42"),
    "lone surrogate": ("'\\ud800'", "ran", "ud800"),
    "surrogate printed": ("class A:\n    def __repr__(self): return 'é\\udc80'\nA()", "ran", "é\\udc80"),
    "bad repr": ("class A:\n    def __repr__(self): return 1/0\nA()", "failed", "ZeroDivisionError"),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=needs_packages if case == "packages" else ()) for case in TOLD]
)
def test_a_call_is_told_what_it_printed_and_how_it_ended(interpreters: Interpreters, case: str) -> None:
    code, end, part = TOLD[case]
    interpreters.run(case, "kept = 6")
    output, ended, seconds, _ = interpreters.run(case, code)
    # A fast machine writes a gigabyte within its second.
    assert ended == end or case == "1 GB"
    assert part in output
    output.encode()  # a model's server takes it
    assert 0 <= seconds < 3 * LIMITS["seconds"]
    is_lost = LOST in output
    assert is_lost == (case in ("end", "deaf"))
    assert (interpreters.run(case, "kept")[0] == "6") != is_lost, "the variables of earlier calls"
    interpreters.forget(case)


@pytest.mark.parametrize(
    "name",
    [
        name if number % 4 == 0 else pytest.param(name, marks=pytest.mark.wide)
        for number, name in enumerate(sorted(PAYLOADS))
    ],
)
def test_hostile_code_is_told_how_it_ended_and_disturbs_no_call(interpreters: Interpreters, name: str) -> None:
    interpreters.run("other", "kept = 7")
    interpreters.run(name, "kept = 6")
    output, ended, *_ = interpreters.run(name, PAYLOADS[name])
    assert ended in ("ran", "failed", "stopped")
    assert (interpreters.run(name, "kept")[0] == "6") != (LOST in output)
    assert interpreters.run("other", "kept")[0] == "7"
    interpreters.forget(name)


def test_between_calls_an_interpreter_stands_still(interpreters: Interpreters) -> None:
    spin = "import threading\nn = [0]\ndef spin():\n    while True: n[0] += 1\nthreading.Thread(target=spin).start()"
    before = alive()
    assert interpreters.run("idle", spin)[1] == "ran"
    until(lambda: alive(psutil.STATUS_STOPPED) - before, "it to stand still while nobody calls")
    assert int(interpreters.run("idle", "n[0]")[0]) > 0
    interpreters.forget("idle")


def test_equal_calls_of_two_samples_give_equal_numbers(interpreters: Interpreters) -> None:
    draw = "import random, numpy\nr = random.random(), float(numpy.random.rand())\nr"
    assert len({interpreters.run(name, draw)[0] for name in "ab"}) == 1
    assert interpreters.run("a", "r = 5").memory < interpreters.run("b", "r = bytearray(99 << 20)").memory - (90 << 20)
    assert interpreters.run("a", "r")[0] == "5"
    for name in "ab":
        interpreters.forget(name)


def killed(interpreters: Interpreters, key: Hashable) -> None:
    process = interpreters._owned[key].cell._process
    assert process is not None
    sandbox = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    psutil.wait_procs(sandbox, timeout=PATIENCE_SECONDS)


def test_lost_variables_are_told_once_and_no_code_runs_twice() -> None:
    interpreters = Interpreters(**LIMITS)
    interpreters.run(1, "kept = 6")
    killed(interpreters, 1)
    assert interpreters.run(1, "print(kept)")[:2] == (f"[the interpreter ended; {LOST}]", "stopped")
    assert interpreters.run(1, "kept = 7")[0] == "[no output]"
    interpreters.lose(1)
    assert interpreters.run(1, "'kept' in globals()")[0] == f"[{LOST}]\nFalse"
    threading.Timer(0.3, killed, (interpreters, 1)).start()
    assert LOST in interpreters.run(1, "import time\nwhile True: time.sleep(0.01)")[0]
    assert interpreters.run(1, "6*7")[0] == "42"
    interpreters.close()


def test_a_sandbox_that_dies_while_it_starts_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    start, deaths = bubblewrap.start, [3]

    def dying(*given: Any) -> subprocess.Popen[bytes]:
        deaths[0] -= 1
        dead = subprocess.Popen(["false"], stderr=subprocess.PIPE, start_new_session=True) if deaths[0] >= 0 else None
        return dead or start(*given)

    monkeypatch.setattr(bubblewrap, "start", dying)
    monkeypatch.setattr(cells, "START_WAITS", (0.0,) * 4)
    interpreters = Interpreters(**LIMITS)
    assert interpreters.run(1, "6*7")[0] == "42"
    deaths[0] = 99
    with pytest.raises(LostError, match="could not start a sandbox"):
        interpreters.run(2, "6*7")
    with pytest.raises(UnavailableError, match="nothing was executed"):
        interpreters.facts()
    interpreters.close()


def test_the_calls_of_a_sample_are_bounded_together() -> None:
    interpreters = Interpreters(**{**LIMITS, "seconds": 2}, total_seconds=1)
    assert "stopped after 1 s" in interpreters.run(1, "import time\ntime.sleep(9)")[0]
    assert interpreters.run(1, "1")[:2] == ("[not run: its calls have taken 1 s, all that a sample has]", "not run")
    assert interpreters.run(2, "1")[0] == "1"
    interpreters.close()


def test_a_sandbox_without_the_packages_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "_folders_of", lambda _: iter(()))
    with pytest.raises(
        UnavailableError, match=r"numpy and sympy and mpmath are not in the sandbox .*\(sandbox=docker:IMAGE\)"
    ):
        Interpreters(**LIMITS).facts()


def test_the_middle_of_a_long_output_is_left_out() -> None:
    for n in range(30):
        shown = Printed(10)
        for character in "abcdefghijklmnopqrstuvwxyzäöü"[:n]:
            shown.add(character)
        whole = "abcdefghijklmnopqrstuvwxyzäöü"[:n]
        expected = whole if n <= 10 else f"{whole[:5]}\n[… {n - 10} characters left out …]\n{whole[-5:]}"
        assert shown.text == expected
