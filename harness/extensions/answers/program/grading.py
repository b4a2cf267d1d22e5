"""Grading replies that are programs: threads, each with a sandbox of its own, take samples and return verdicts."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, lru_cache

from harness.answers.bounds import MAX_ANSWER_CHARS
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.core.records import Question, Sample
from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.decide import RULES, ProgramDecision, decide
from harness.extensions.answers.program.replies import ReplyProgram, program_of
from harness.extensions.answers.program.sandboxes import maker_of, name_of
from harness.extensions.answers.program.tests_of import QuestionTests, tests_of
from harness.grading.find.extract import shorten_answer
from harness.grading.verdict import Verdict

VERSION = "1"
"""Version of the rules. It is raised with every change by which a program may get another verdict."""

_VOTE_DIGITS = 16
"""Number of digits of the checksum that is the vote of a program. Only equal programs vote together, so maj@k takes the
most frequent program."""


class ProgramGrader:
    """A `Decider` that runs programs against tests. Each thread, started when samples come, has a sandbox of its own.

    _cells: the sandboxes of all threads.
    """

    def __init__(self, workers: int, sandbox: str | None) -> None:
        self._kind, self._maker = maker_of(sandbox)
        self._threads = ThreadPoolExecutor(workers, "programs")
        self._own = threading.local()
        self._cells: list[SandboxCell] = []

    @cached_property
    def name(self) -> str:
        """Versions of grader and sandbox. Raises `UsageError` if no sandbox can be made on this machine."""
        return f"program/{VERSION} {name_of(self._kind, self._maker)}"

    def ask(self, question: Question, sample: Sample, *, with_steps: bool = False) -> Future[Verdict]:
        """Queue the sample; the future gets its verdict."""
        return self._threads.submit(self._decide, question, sample, with_steps)

    def close(self) -> None:
        """Drop the samples still in the queue, and end threads and sandboxes."""
        self._threads.shutdown(cancel_futures=True)
        for cell in self._cells:
            cell.close()

    def _decide(self, question: Question, sample: Sample, with_steps: bool) -> Verdict:
        """Decide a reply in the sandbox of this thread."""
        if not hasattr(self._own, "cell"):
            self._own.cell = SandboxCell(self._maker)
            self._cells.append(self._own.cell)
        return _verdict(self._own.cell, question, sample, self.name, with_steps=with_steps)


start = ProgramGrader


def _verdict(sandbox: SandboxCell, question: Question, sample: Sample, grader: str, *, with_steps: bool) -> Verdict:
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


_tests = lru_cache(maxsize=64)(tests_of)
"""`tests_of` with a cache, since all samples of a question have the same reference."""


def _steps(program: ReplyProgram, decision: ProgramDecision, tests: QuestionTests) -> tuple[str, ...]:
    """Say in sentences how a program got its verdict: where it was found, how it was run, which rule decided."""
    n = len(tests.cases) or len(tests.checks)
    starter = " with its starter code" if tests.starter else ""
    return (
        f"program found at characters {program.start:,}–{program.end:,}: {len(program.code):,} characters of "
        f"python{starter}",
        f"run in a sandbox on {count_noun(n, 'test')} ({tests.style}), {tests.limits.seconds:g} s of CPU time",
        *(() if decision.failure is None else decision.failure.steps),
        f"rule {decision.rule}: {visible(RULES[decision.rule])}",
        decision.outcome.replace("_", " "),
    )
