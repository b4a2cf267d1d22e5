"""Grade replies that are programs: threads, each with its own sandbox, take samples and return verdicts.

`replies` finds the program in a reply. Jobs in the sandbox determine whether it passes its tests, which have one of
three styles:

    stdin    a fresh process for each test; its output is compared here, so the program never sees the expected output
    calls    one process; another process (`inside.test_process`) compares the results of the program's function
    checks   one process; the test code runs in another process (`inside.test_process`)

If the sandbox fails twice, the verdict is "undecided", never "wrong".
"""

from __future__ import annotations

import contextlib
import hashlib
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from reasoning_programs.cells import SandboxCell, SandboxFailedError, name_of, sandbox_maker
from reasoning_programs.inside.program_process import EXIT_MEMORY
from reasoning_programs.replies import ReplyProgram, program_of
from reasoning_programs.tests_of import QuestionTests, tests_of
from reasoning_programs.text import count_noun, visible

VERSION = "2"
"""Version of the rules. It is increased with every change that may alter the verdict on a program."""

_VOTE_DIGITS = 16
"""Number of digits of the checksum that serves as a program's vote. Only identical programs share a vote, so maj@k
selects the most frequent program."""


VerdictName = Literal["correct", "wrong", "no_answer", "undecided"]


class ProgramVerdict(NamedTuple):
    """The verdict on a reply. rule: a key of `RULES`, or `no answer`. start, end: the characters of the reply with its
    program. code: the program as it was run. steps: how the verdict was reached, in sentences, if asked for. grader:
    versions of this grader and the sandbox.
    """

    outcome: VerdictName
    rule: str
    start: int = 0
    end: int = 0
    code: str = ""
    steps: tuple[str, ...] = ()
    grader: str = ""

    @property
    def vote(self) -> str:
        """A checksum of the program: identical programs have the same vote. Empty if there is no program."""
        if not self.code:
            return ""
        return hashlib.sha256(self.code.encode("utf-8", "surrogatepass")).hexdigest()[:_VOTE_DIGITS]


class Grader:
    """Runs the programs in replies against tests. Threads are started when replies arrive, and each has its own
    sandbox.

    workers: number of threads. sandbox: as for `Interpreters`. cache: the folder for long tests (`tests_of`); needed
    only for references that name it. _cells: the sandboxes of all threads. Raises `UnavailableError` for an unknown
    sandbox.
    """

    def __init__(self, workers: int = 1, sandbox: str | None = None, cache: Path | None = None) -> None:
        self._kind, self._maker = sandbox_maker(sandbox)
        self._tests = lru_cache(maxsize=64)(lambda reference: tests_of(reference, cache or Path()))
        self._threads = ThreadPoolExecutor(workers, "programs")
        self._own = threading.local()
        self._cells: list[SandboxCell] = []

    @cached_property
    def name(self) -> str:
        """Versions of grader and sandbox. Raises `UnavailableError` if no sandbox can be started on this machine."""
        return f"program/{VERSION} {name_of(self._kind, self._maker)}"

    def ask(self, tests: QuestionTests | str, reply: str | None, *, with_steps: bool = False) -> Future[ProgramVerdict]:
        """Queue a reply; the future gets its verdict, or raises `UnavailableError` or `LostError`.

        tests: the tests, or a reference that contains them. reply: the text after the reasoning; None: it has none.
        """
        return self._threads.submit(self._decide, tests, reply, with_steps)

    def close(self) -> None:
        """Drop the replies still in the queue, and stop threads and sandboxes."""
        self._threads.shutdown(cancel_futures=True)
        for cell in self._cells:
            cell.close()

    def _decide(self, tests: QuestionTests | str, reply: str | None, with_steps: bool) -> ProgramVerdict:
        """The verdict on one reply, after its program has run in this thread's sandbox."""
        if not hasattr(self._own, "cell"):
            self._own.cell = SandboxCell(self._maker)
            self._cells.append(self._own.cell)
        grader, tests = self.name, self._tests(tests) if isinstance(tests, str) else tests
        program = program_of(reply, tests)
        if program is None:
            words = ("the reply contains no program: no code block and no statements after the reasoning", "no answer")
            return ProgramVerdict("no_answer", "no answer", steps=words if with_steps else (), grader=grader)
        decision = decide(self._own.cell, tests, program.code)
        steps = _steps(program, decision, tests) if with_steps else ()
        return ProgramVerdict(decision.outcome, decision.rule, program.start, program.end, program.code, steps, grader)


def grade_program(reply: str | None, tests: QuestionTests, *, sandbox: str | None = None) -> ProgramVerdict:
    """The verdict on the last program in a reply, with its steps, by a sandbox that is started for it.

    Raises `UnavailableError` if no such sandbox can be started, `LostError` if it cannot be started any more. For many
    replies, use a `Grader`, which keeps its sandboxes.
    """
    with contextlib.closing(Grader(1, sandbox)) as grader:
        return grader.ask(tests, reply, with_steps=True).result()


def _steps(program: ReplyProgram, decision: ProgramDecision, tests: QuestionTests) -> tuple[str, ...]:
    """Explain in sentences how the verdict was reached: where the program was found, how it was run, and which rule
    decided."""
    n = len(tests.cases) or len(tests.checks)
    starter = " with its starter code" if tests.starter else ""
    return (
        f"program found at characters {program.start:,}–{program.end:,}: {len(program.code):,} characters of "
        f"Python{starter}",
        f"run in a sandbox on {count_noun(n, 'test')} ({tests.style}), {tests.limits.seconds:g} s of CPU time",
        *(() if decision.failure is None else decision.failure.steps),
        f"rule {decision.rule}: {visible(RULES[decision.rule])}",
        decision.outcome.replace("_", " "),
    )


# ---- deciding by jobs in a sandbox


PASSED, SANDBOX, TESTS = "all tests", "sandbox", "broken tests"
"""Rule names: every test passed; the sandbox failed; the benchmark's own tests cannot be run."""

RULES = {
    PASSED: "the program passed all its tests in the sandbox",
    "wrong output": "the output of a test differs from the expected output",
    "exception": "the program raised an exception",
    "time limit": "the program exceeded the CPU time limit of a test",
    "sleep limit": "the program exceeded the sleep limit of a test",
    "memory limit": "the program exceeded its memory limit",
    "output limit": "the program exceeded its output limit",
    "ended": "the program exited before it returned a result",
    "bad value": "the program returned a value that the tests cannot read",
    SANDBOX: "the sandbox failed twice, so the program was not tested",
    TESTS: "the benchmark's own tests cannot be run",
}
"""Rule → the reason for the verdict, in words."""

MAX_SHOWN_CHARS = 400
"""Maximum length of a failed test's input, output or message as shown."""

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Maximum size of a file that a program may write, including its output; for a test that expects a large output, twice
that output."""
_RECURSION = 50_000
"""Python's recursion limit for programs, as in LiveCodeBench."""

_SLEEP_SECONDS = 5.0
"""Seconds that a program may sleep, unless its CPU time limit is longer: then that limit applies."""

_TESTS_MEMORY_MB = 4096
_TESTS_CPU_SECONDS = 120
"""Memory and CPU time of the process that runs the tests."""


class Failure(NamedTuple):
    """The first test that failed. These texts are raw: display them with `visible`.

    test: its number, from 1; 0 if the program failed before any test. test_input: the test's input. expected, came: the
    expected output and the program's output.
    """

    test: int
    test_input: str = ""
    expected: str = ""
    came: str = ""
    message: str = ""

    @property
    def steps(self) -> tuple[str, ...]:
        """The failure in sentences, for the steps of a verdict."""
        first = f"test {self.test} was the first to fail" if self.test else "the program failed before any test ran"
        texts = {"input": self.test_input, "expected": self.expected, "came": self.came, "message": self.message}
        return (first, *(f"{name}: {visible(text, MAX_SHOWN_CHARS)}" for name, text in texts.items() if text))


class ProgramDecision(NamedTuple):
    """The verdict on a program."""

    outcome: VerdictName
    rule: str
    failure: Failure | None = None


def decide(sandbox: SandboxCell, tests: QuestionTests, code: str) -> ProgramDecision:
    """Run the program `code` on its tests until one fails. Raises `UnavailableError` if no sandbox can be started."""
    try:
        return (_by_output if tests.style == "stdin" else _by_tests)(sandbox, tests, code)
    except SandboxFailedError as error:
        return ProgramDecision("undecided", SANDBOX, Failure(0, message=str(error)))


def _job(tests: QuestionTests, code: str, *, each: bool, n: int = 1, output: int = 0) -> dict[str, Any]:
    """The job for the sandbox: the program and its limits.

    n: number of tests. each: whether the CPU time limit applies to each test rather than to all tests together. output:
    number of bytes that the program must be allowed to write.
    """
    seconds = tests.limits.seconds
    return {
        "style": tests.style,
        "code": code,
        "header": tests.header,
        "limits": {
            "cpu": seconds,
            "cpu_total": seconds * (n if each else 1),
            "each": each,
            "sleep": max(seconds, _SLEEP_SECONDS),
            "memory": tests.limits.memory_mb << 20,
            "file": max(output, MAX_FILE_BYTES),
            "recursion": _RECURSION,
            "tests_memory": _TESTS_MEMORY_MB << 20,
            "tests_cpu": _TESTS_CPU_SECONDS,
        },
    }


def _by_output(sandbox: SandboxCell, tests: QuestionTests, code: str) -> ProgramDecision:
    """Run the program once for each test, with the test's input, and compare what it prints."""
    for number, case in enumerate(tests.cases, 1):
        report = sandbox.run_job(_job(tests, code, each=True, output=2 * len(case.output)), {"input": case.input})
        # The sandbox sends each byte of the output as one character of latin-1.
        output = str(report.get("out", "")).encode("latin-1", "replace").decode("utf-8", "replace")
        rule, error = _rule_of(report)
        if not rule and not same_lines(output, case.output):
            rule = "wrong output"
        if rule:
            return ProgramDecision("wrong", rule, Failure(number, case.input, case.output, output, error))
    return ProgramDecision("correct", PASSED)


def _rule_of(report: dict[str, Any]) -> tuple[str, str]:
    """Return the rule by which a program failed ("" if it ended normally), and the last line of its standard error.

    report: the sandbox's report on the program. Raises `SandboxFailedError` if the report does not say how the program
    ended.
    """
    end, number = report.get("end"), report.get("signal")
    # The last line of a traceback names the exception.
    error = str(report.get("err", "")).strip().rpartition("\n")[2]
    if end != "closed":
        if end not in RULES:
            raise SandboxFailedError("the sandbox did not report how the program ended")
        return str(end), error
    if report.get("code") == 0:
        return "", error
    if report.get("code") == EXIT_MEMORY:
        return "memory limit", error
    if isinstance(number, int):
        error = error or f"killed by signal {signal.Signals(number).name if number in _SIGNALS else number}"
    return "exception", error or f"exited with code {report.get('code')}"


_SIGNALS = frozenset(signal.Signals)
"""The named signals."""


def same_lines(came: str, expected: str) -> bool:
    """Whether two outputs match line by line: as texts without surrounding blanks, or as lists of decimal numbers.

    came: the program's output. expected: the test's output. The rule is LiveCodeBench's
    (lcb_runner/evaluation/testing_util.py, grade_stdio).
    """
    lines = [[line.strip() for line in text.strip().split("\n")] for text in (came, expected)]
    return len(lines[0]) == len(lines[1]) and all(a == b or _same_numbers(a, b) for a, b in zip(*lines, strict=True))


def _same_numbers(came: str, expected: str) -> bool:
    """Whether two lines are equal lists of decimal numbers."""
    try:
        return [Decimal(word) for word in came.split()] == [Decimal(word) for word in expected.split()]
    except (InvalidOperation, ValueError):
        return False


def _by_tests(sandbox: SandboxCell, tests: QuestionTests, code: str) -> ProgramDecision:
    """Have the sandbox call the program's functions, or run the test code, and read its report.

    The report is from the tests (`inside.test_process`), or is about a program that ended before them. Raises
    `SandboxFailedError` for any other report.
    """
    calls = tests.style == "calls"
    work: dict[str, Any]
    if calls:
        work = {"function": tests.function, "cases": [{"input": c.input, "output": c.output} for c in tests.cases]}
    else:
        work = {"setup": tests.setup, "tests": list(tests.checks), "own": [tests.function]}

    report = sandbox.run_job(_job(tests, code, each=calls, n=len(tests.cases)), work)
    end = report.get("end")
    if end == "passed":
        return ProgramDecision("correct", PASSED)
    if end == "broken":
        return ProgramDecision("undecided", TESTS, Failure(0, message=str(report.get("why", ""))))
    if report.get("begun") is False and end in RULES:
        return ProgramDecision("wrong", str(end), Failure(0, message=str(report.get("message", ""))))
    number, rule = report.get("test"), report.get("rule")
    if end != "failed" or not isinstance(number, int) or rule not in RULES:
        raise SandboxFailedError("the sandbox sent no report")
    expected = str(report.get("expected") or report.get("asserted", ""))
    failure = Failure(
        number + 1,  # the sandbox counts tests from 0
        str(report.get("arguments", "")),
        expected,
        str(report.get("came", "")),
        str(report.get("message", "")),
    )
    return ProgramDecision("wrong", str(rule), failure)
