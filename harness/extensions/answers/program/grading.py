"""Grading replies that are programs: threads, each with a sandbox of its own, take samples and return verdicts."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from concurrent.futures import Future
from functools import lru_cache

from harness.answers.bounds import MAX_ANSWER_CHARS
from harness.core.inert import visible
from harness.core.records import Question, Sample
from harness.extensions.answers.program.decide import RULES, ProgramDecision, Sandbox, decide
from harness.extensions.answers.program.replies import ReplyProgram, program_of
from harness.extensions.answers.program.sandboxes import SandboxKind, sandbox_kind
from harness.extensions.answers.program.tests_of import QuestionTests, tests_of
from harness.grading.find.extract import shorten_answer
from harness.grading.verdict import Verdict

VERSION = "1"
"""Version of the rules. It is raised with every change by which a program may get another verdict."""

_VOTE_DIGITS = 16
"""Number of digits of the checksum that is the vote of a program. Only equal programs vote together, so maj@k takes the
most frequent program."""

_Task = tuple["Future[Verdict]", Question, Sample, bool]
"""A queued sample: (the future of its verdict, question, sample, whether the verdict shall have its steps)."""


class ProgramGrader:
    """A `Decider` that runs programs against tests. Threads and sandboxes are started when samples come.

    _size: the largest number of threads. _idle: counts the threads that wait for a sample.
    """

    def __init__(self, workers: int, sandbox: str | None) -> None:
        self._size = workers
        self._kind: SandboxKind = sandbox_kind(sandbox)
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)

    @property
    def name(self) -> str:
        """Versions of grader and sandbox. Raises `UsageError` if no sandbox can be made on this machine."""
        return f"program/{VERSION} {self._kind.name()}"

    def ask(self, question: Question, sample: Sample, *, with_steps: bool = False) -> Future[Verdict]:
        """Queue the sample; the future gets its verdict."""
        future: Future[Verdict] = Future()
        self._tasks.put((future, question, sample, with_steps))
        # A thread is started only if no idle one can take the task: each holds a sandbox of its own.
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._size:
            thread = threading.Thread(target=self._work, name=f"programs-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def close(self) -> None:
        """Drop the samples still in the queue, and end threads and sandboxes."""
        with contextlib.suppress(queue.Empty):  # nobody waits for these verdicts any more
            while True:
                self._tasks.get_nowait()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _work(self) -> None:
        """Decide the replies in the queue, in one sandbox; the work of one thread."""
        sandbox = self._kind.start()
        try:
            while (task := self._tasks.get()) is not None:
                future, question, sample, with_steps = task
                try:
                    future.set_result(_verdict(sandbox, question, sample, self.name, with_steps=with_steps))
                except BaseException as error:  # noqa: BLE001 - the future hands the error to its reader
                    future.set_exception(error)
                self._idle.release()
        finally:
            sandbox.close()


def _verdict(sandbox: Sandbox, question: Question, sample: Sample, grader: str, *, with_steps: bool) -> Verdict:
    """The verdict on one reply, after its program was run in the sandbox.

    grader: the name that the grade records. with_steps: whether the verdict has its steps in words.
    """
    tests = _tests(question.references[0])
    program = program_of(sample.text, tests)
    if program is None:
        steps = ("the reply gives no program: no fenced block after the reasoning", "no answer") if with_steps else ()
        return Verdict("no_answer", "no answer", steps=steps, grader=grader)
    decision = decide(sandbox, tests, program.code)
    assert sample.text is not None
    return Verdict(
        outcome=decision.outcome,
        rule=decision.rule,
        extracted=shorten_answer(sample.text[program.start : program.end], MAX_ANSWER_CHARS),
        span=(program.start, program.end),
        vote=hashlib.sha256(program.code.encode("utf-8", "surrogatepass")).hexdigest()[:_VOTE_DIGITS],
        unextracted=False,
        steps=_steps(program, decision, tests) if with_steps else (),
        grader=grader,
    )


@lru_cache(maxsize=64)
def _tests(reference: str) -> QuestionTests:
    """The tests in a reference; cached, since all samples of a question have the same reference."""
    return tests_of(reference)


def _steps(program: ReplyProgram, decision: ProgramDecision, tests: QuestionTests) -> tuple[str, ...]:
    """Say in sentences how a program got its verdict: where it was found, how it was run, which rule decided."""
    n = len(tests.cases) or len(tests.checks)
    return (
        f"program found at characters {program.start:,}–{program.end:,}: {len(program.code):,} characters of "
        f"python{' with its starter code' if tests.starter else ''}",
        f"run in a sandbox on {n} test{'' if n == 1 else 's'} ({tests.style}), {tests.limits.seconds:g} s of CPU time",
        *(() if decision.failure is None else decision.failure.steps),
        f"rule {decision.rule}: {visible(RULES[decision.rule])}",
        decision.outcome.replace("_", " "),
    )
