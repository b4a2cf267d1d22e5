"""Measures the CPU time of small programs in the sandbox, beside plain `subprocess`: `python -m bench.programs [N]`.

It counts CPU seconds of this process and of all processes that it started, so other work on the machine changes little.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

import psutil

from harness.extensions.answers.program import bubblewrap
from harness.extensions.answers.program.bubblewrap import interpreter
from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.decide import decide
from harness.extensions.answers.program.tests_of import Case, QuestionTests

inside = 0.0
"""CPU seconds of the sandboxes that have ended."""

CODE = "print(2 * int(input()))"


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that ended."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return inside + sum(sum(resource.getrusage(kind)[:2]) for kind in kinds)


def _ended(cell: SandboxCell) -> None:
    """End the sandbox, and add the CPU time of its processes to `inside`; no process here waits for them, so the system
    does not.
    """
    global inside
    assert cell._process is not None
    inside += sum(
        sum(process.cpu_times()[:4]) for process in psutil.Process(cell._process.pid).children(recursive=True)
    )
    cell.close()


def sandboxed(n: int) -> None:
    cell = SandboxCell(bubblewrap)
    tests = QuestionTests(style="stdin", cases=(Case("21", "42"),))
    for _ in range(n):
        assert decide(cell, tests, CODE).outcome == "correct"
    _ended(cell)


def functions(n: int) -> None:
    cell = SandboxCell(bubblewrap)
    tests = QuestionTests(style="checks", checks=("assert f(1) == 2",), function="f")
    for _ in range(n):
        assert decide(cell, tests, "def f(x): return x + 1").outcome == "correct"
    _ended(cell)


def bare(n: int) -> None:
    for _ in range(n):
        done = subprocess.run([interpreter().path, "-c", CODE], input=b"21", capture_output=True, check=True)
        assert done.stdout == b"42\n"


def rate(run: Callable[[int], None], n: int) -> float:
    """Programs that are run in a second of CPU time."""
    run(2)
    before = cpu_seconds()
    run(n)
    return n / (cpu_seconds() - before)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rates = {run.__name__: rate(run, count) for run in (bare, sandboxed, functions)}
    for name, value in rates.items():
        print(f"{name:<10} {value:6.0f} programs a CPU second, {value / rates['bare']:.2f} × bare")
