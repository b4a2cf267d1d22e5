"""Tests that verdicts on programs do not depend on the machine's load: `python -m bench.programs_under_load [N] [LOAD]
[SEED]`.

N generated programs, each of which uses a known fraction of its limit of CPU time or sleep, are graded twice: as the
machine is, and beside LOAD processes that use a processor all the time. Prints how many verdicts differ between the
two, and how many are not those that the program was made for. Exit code 1 if there are any.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

from harness.extensions.answers.program import bubblewrap
from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.decide import decide
from harness.extensions.answers.program.tests_of import Case, ProgramLimits, QuestionTests

CPU_SECONDS = 0.2
"""CPU limit of a test. A program may sleep for at least 5 s."""

SPEND = "import time\nwhile time.process_time() < {}: pass\n"
SHARES = (0.0, 0.2, 0.5, 0.8, 1.3, 2.0)
"""Fractions of the CPU limit that the programs use."""


def programs(n: int, seed: int) -> Iterator[tuple[str, QuestionTests, str]]:
    """Make n programs with tests of all styles: (code, tests, the rule that must decide)."""
    draw = random.Random(seed)
    for number in range(n):
        share, right = draw.choice(SHARES), draw.random() < 0.5
        before = SPEND.format(share * CPU_SECONDS)
        if draw.random() < 0.1:
            before += f"time.sleep({draw.uniform(0.1, 0.6):.2f})\n"
        rule = "time limit" if share > 1 else "all tests" if right else "wrong output"
        answer = number if right else number + 1
        limits = ProgramLimits(CPU_SECONDS, 512)
        body = "".join(f"    {line}\n" for line in before.splitlines()) + f"    return {answer}\n"
        style = draw.choice(("stdin", "calls", "checks"))
        # Of a function only the CPU time since the call counts in style calls, so it spends from there on.
        spending = body.replace(
            "while time.process_time() <", "t = time.process_time()\n    while time.process_time() - t <"
        )
        if style == "stdin":
            yield (
                before + f"print({answer})\n",
                QuestionTests(style="stdin", cases=(Case("", str(number)),), limits=limits),
                rule,
            )
        elif style == "calls":
            yield (
                "def f(x):\n" + spending,
                QuestionTests(style="calls", function="f", cases=(Case("1", str(number)),), limits=limits),
                rule,
            )
        else:
            yield (
                "def f(x):\n" + spending,
                QuestionTests(style="checks", function="f", checks=(f"assert f(1) == {number}",), limits=limits),
                rule,
            )


def verdicts(listed: list[tuple[str, QuestionTests, str]]) -> list[str]:
    """The rule that decided each program, all in one sandbox."""
    cell = SandboxCell(bubblewrap)
    try:
        return [decide(cell, tests, code).rule for code, tests, _ in listed]
    finally:
        cell.close()


def main(n: int = 1_000, load: int = 20, seed: int = 1) -> int:
    listed = list(programs(n, seed))
    begun = time.monotonic()
    idle = verdicts(listed)
    middle = time.monotonic()
    before = os.getloadavg()[0]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
    try:
        loaded = verdicts(listed)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    differing = [rules for rules in zip(idle, loaded, strict=True) if rules[0] != rules[1]]
    unexpected = [
        (decision[2], *rules)
        for decision, *rules in zip(listed, idle, loaded, strict=True)
        if {decision[2], *rules} != {decision[2]}
    ]
    print(f"{n} programs: {dict(Counter(rule for _, _, rule in listed))}")
    print(f"load {before:.0f}: {middle - begun:.0f} s; with {load} more processes: {time.monotonic() - middle:.0f} s")
    print(f"{n - len(differing)} of {n} verdicts are the same, {n - len(unexpected)} are those that were meant")
    for item in unexpected[:10]:
        print(*item, sep=" / ")
    return 1 if differing or unexpected else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
