"""Our verdicts beside those of LiveCodeBench's own testing_util.py, on more than 500 programs.

`make test-programs` runs it; `HARNESS_LIVECODEBENCH` names the file testing_util.py, of a checkout of LiveCodeBench.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.extensions.answers.program import rows
from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.decide import decide
from harness.extensions.answers.program.tests_of import ProgramLimits, QuestionTests
from tests.programs.sandboxed import cell, needs_sandbox


class Submission(NamedTuple):
    """A program with its tests, as LiveCodeBench holds them. function: "" for standard input and output."""

    name: str
    code: str
    cases: tuple[tuple[str, str], ...]
    function: str = ""


_STDIN: dict[str, tuple[str, str, Any]] = {
    "double": ("n = int(input())", "n * 2", lambda n: n * 2),
    "square": ("n = int(input())", "n * n", lambda n: n * n),
    "half": ("n = int(input())", "n / 2", lambda n: n / 2),
    "digits": ("n = int(input())", "sum(map(int, str(abs(n))))", lambda n: sum(map(int, str(abs(n))))),
    "row": ("n = int(input())", "' '.join(map(str, range(n % 9)))", lambda n: " ".join(map(str, range(n % 9)))),
    "even": ("n = int(input())", "'YES' if n % 2 == 0 else 'NO'", lambda n: "YES" if n % 2 == 0 else "NO"),
    "column": ("n = int(input())", "'\\n'.join(map(str, range(1 + n % 5)))",
               lambda n: "\n".join(map(str, range(1 + n % 5)))),
    "root": ("n = int(input())", "abs(n) ** 0.5", lambda n: abs(n) ** 0.5),
}  # fmt: skip
_NUMBERS = (3, 0, 17, 1_000_003)

_FRAMES = {
    "plain": "{read}\nprint({value})",
    "main": "def main():\n    {read}\n    print({value})\nmain()",
    "guard": "def main():\n    {read}\n    print({value})\n\nif __name__ == '__main__':\n    main()",
    "stdin read": "import sys\nn = int(sys.stdin.read())\nprint({value})",
    "stdin readline": "import sys\nn = int(sys.stdin.readline())\nprint({value})",
    "readlines": "import sys\nn = int(sys.stdin.readlines()[0])\nprint({value})",
    "buffer": "import sys\nn = int(sys.stdin.buffer.read())\nprint({value})",
    "input aliased": "import sys\ninput = lambda: sys.stdin.readline().strip()\n{read}\nprint({value})",
    "write": "import sys\n{read}\nsys.stdout.write(str({value}))",
    "exit": "import sys\n{read}\nprint({value})\nsys.exit(0)",
    "exit 1": "import sys\n{read}\nprint({value})\nsys.exit(1)",
    "early exit": "{read}\nif n == 0:\n    exit()\nprint({value})",
    "trailing blanks": "{read}\nprint({value}, end='   \\n\\n')",
    "leading blank": "{read}\nprint()\nprint({value})",
    "no newline": "{read}\nprint({value}, end='')",
    "too much": "{read}\nprint({value})\nprint('done')",
    "prompted": "n = int(input('n? '))\nprint({value})",
    "off by one": "{read}\nn += 1\nprint({value})",
    "wrong for zero": "{read}\nif n == 0:\n    n = 1\nprint({value})",
    "wrong for big": "{read}\nn = n % 1_000_000\nprint({value})",
    "nothing": "{read}",
    "raises": "{read}\nprint({value})\nraise ValueError('at the end')",
    "raises for zero": "{read}\n1 // n\nprint({value})",
    "syntax": "{read}\nprint({value}",
    "reads too much": "{read}\ninput()\nprint({value})",
    "float": "{read}\nprint(float({value}) if not isinstance({value}, str) else {value})",
    "padded": "{read}\nprint('0' + str({value}))",
    "rounded": "{read}\nprint(round({value}, 3) if not isinstance({value}, str) else {value})",
    "upper": "{read}\nprint(str({value}).lower())",
    "star imports": "{read}\nx = Counter([n])\nprint({value} + 0 * floor(1.5) if not isinstance({value}, str) else {value})",
    "recursion": "def f(k):\n    return 0 if k == 0 else f(k - 1)\n{read}\nf(3000)\nprint({value})",
    "slow once": "{read}\nwhile n == 17:\n    pass\nprint({value})",
    "memo": "from functools import lru_cache\n@lru_cache(None)\ndef g(k):\n    return k\n{read}\ng(n)\nprint({value})",
    "class": "class S:\n    def run(self):\n        {read}\n        print({value})\nS().run()",
    "printed twice": "{read}\nprint({value})\nprint({value})",
    "import inside": "def main():\n    import math\n    {read}\n    print({value})\nmain()",
}  # fmt: skip

_CALLS: dict[str, tuple[str, Any]] = {
    "add": ("a + b", lambda a, b: a + b),
    "pair": ("[a, b]", lambda a, b: [a, b]),
    "largest": ("max(a, b)", max),
    "divided": ("a / (b or 1)", lambda a, b: a / (b or 1)),
    "steps": ("list(range(a % 5, a % 5 + b % 4))", lambda a, b: list(range(a % 5, a % 5 + b % 4))),
    "text": ("str(a) * (b % 3)", lambda a, b: str(a) * (b % 3)),
    "same": ("a == b", lambda a, b: a == b),
}  # fmt: skip
_PAIRS = ((1, 2), (0, 0), (-5, 7), (10**12, 3))
_CALL_FRAMES = {
    "class": "class Solution:\n    def solve(self, a, b):\n        return {value}",
    "function": "def solve(a, b):\n    return {value}",
    "typed": "class Solution:\n    def solve(self, a: int, b: int) -> List[int]:\n        return {value}",
    "tuple": "class Solution:\n    def solve(self, a, b):\n        x = {value}\n        return tuple(x) if isinstance(x, list) else x",
    "float": "class Solution:\n    def solve(self, a, b):\n        x = {value}\n        return float(x) if isinstance(x, int) else x",
    "none": "class Solution:\n    def solve(self, a, b):\n        {value}",
    "off by one": "class Solution:\n    def solve(self, a, b):\n        b += 1\n        return {value}",
    "raises": "class Solution:\n    def solve(self, a, b):\n        if a == 0:\n            raise KeyError(a)\n        return {value}",
    "wrong name": "class Solution:\n    def other(self, a, b):\n        return {value}",
    "state": "class Solution:\n    n = 0\n    def solve(self, a, b):\n        Solution.n += 1\n        return {value} if Solution.n < 3 else None",
    "prints": "class Solution:\n    def solve(self, a, b):\n        print('debugging')\n        return {value}",
    "syntax": "class Solution:\n    def solve(self, a, b)\n        return {value}",
    "helper": "def helper(x):\n    return x\nclass Solution:\n    def solve(self, a, b):\n        return helper({value})",
    "three arguments": "class Solution:\n    def solve(self, a, b, c):\n        return {value}",
    "slow once": "class Solution:\n    def solve(self, a, b):\n        while a == 0: pass\n        return {value}",
    "main too": "class Solution:\n    def solve(self, a, b):\n        return {value}\nif __name__ == '__main__':\n    print(Solution().solve(1, 2))",
    "half wrong": "class Solution:\n    def solve(self, a, b):\n        return {value} if a > 0 else 'no'",
    "generator": "class Solution:\n    def solve(self, a, b):\n        return (x for x in [{value}])",
    "nested": "class Solution:\n    def solve(self, a, b):\n        return [{value}]",
    "set": "class Solution:\n    def solve(self, a, b):\n        x = {value}\n        return set(x) if isinstance(x, list) else x",
    "numpy": "import numpy as np\nclass Solution:\n    def solve(self, a, b):\n        x = {value}\n        return np.int64(x) if type(x) is int else x",
    "equal to all": "class Any:\n    def __eq__(self, other): return True\nclass Solution:\n    def solve(self, a, b):\n        return Any()",
    "exit": "import sys\nclass Solution:\n    def solve(self, a, b):\n        sys.exit(0)",
    "endless recursion": "class Solution:\n    def solve(self, a, b):\n        return self.solve(b, a)",
    "imports by star": "class Solution:\n    def solve(self, a, b):\n        Counter([a]); heapify([b]); gcd(4, 6)\n        return {value}",
}  # fmt: skip


def submissions() -> Iterator[Submission]:
    """All of them."""
    for task, (read, value, right) in _STDIN.items():
        cases = tuple((f"{n}\n", f"{right(n)}\n") for n in _NUMBERS)
        for frame, text in _FRAMES.items():
            yield Submission(f"{task}: {frame}", text.format(read=read, value=value), cases)
    for task, (value, right) in _CALLS.items():
        cases = tuple((f"{a}\n{b}", json.dumps(right(a, b))) for a, b in _PAIRS)
        for frame, text in _CALL_FRAMES.items():
            yield Submission(f"{task} called: {frame}", text.format(value=value), cases, "solve")
    for count in range(2, 44):  # further sums, each of numbers in one line and in lines
        numbers = list(range(count))
        for name, code in (
            ("line", "print(sum(map(int, input().split())))"),
            ("lines", "import sys\nprint(sum(int(x) for x in sys.stdin.read().split()))"),
        ):
            given = " ".join(map(str, numbers))
            yield Submission(f"sum of {count}: {name}", code, ((given, str(sum(numbers))),))


pytestmark = needs_sandbox
__all__ = ["cell"]

TESTING_UTIL = Path(os.environ.get("HARNESS_LIVECODEBENCH", "/nowhere"))
SECONDS = 2

THEIR_SECONDS = 40
"""Its limit for programs that end: it is of wall time, and a busy machine would fail right programs."""

EXPLAINED = {
    "equal to all": "there a class of the program decides what its values equal; here it never does",
}
"""Variant → why the two differ."""


def as_read(submission: Submission) -> QuestionTests:
    """The tests of a submission, by way of a row of LiveCodeBench's form."""
    cases = [{"input": given, "output": output, "testtype": "stdin"} for given, output in submission.cases]
    row = {
        "public_test_cases": json.dumps(cases[:1]),
        "private_test_cases": json.dumps(cases[1:]),
        "starter_code": "",
        "metadata": json.dumps({"func_name": submission.function} if submission.function else {}),
    }
    settings = {"format": "livecodebench", "seconds": SECONDS, "memory_mb": 2048}
    return rows.read_row(settings, submission.name, row).tests


def _their_seconds(code: str) -> int:
    return SECONDS if "while" in code else THEIR_SECONDS


def test_there_are_more_than_five_hundred() -> None:
    assert len({(s.code, s.cases) for s in submissions()}) > 500
    assert as_read(next(submissions())).limits == ProgramLimits(SECONDS, 2048)


@pytest.mark.skipif(not TESTING_UTIL.exists(), reason="HARNESS_LIVECODEBENCH names no testing_util.py")
def test_verdicts_are_those_of_livecodebench(cell: SandboxCell) -> None:
    listed = list(submissions())
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "livecodebench_driver.py"), str(TESTING_UTIL)],
        input=json.dumps([(s.code, s.cases, s.function, _their_seconds(s.code)) for s in listed]),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    theirs = json.loads(done.stdout)
    differing = []
    for submission, passed in zip(listed, theirs, strict=True):
        decision = decide(cell, as_read(submission), submission.code)
        if decision.outcome != ("correct" if passed else "wrong"):
            differing.append((submission.name, passed, decision.rule, decision.failure))
    unexplained = [item for item in differing if item[0].rpartition(": ")[2] not in EXPLAINED]
    assert unexplained == []
    assert sum(theirs) > 150
    assert len(theirs) - sum(theirs) > 150
