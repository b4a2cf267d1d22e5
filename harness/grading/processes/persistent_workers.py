"""Grading workers that live as long as this process: one for `harness.grade` in a loop, several for a trainer.

Starting a worker takes a fifth of a second; deciding an answer takes a few microseconds. So the first call starts
workers and later calls use them, under the same limits: an answer beyond its deadline or memory ends its worker, and
the next call starts another.

- Threads take turns; no thread gets the verdict of another thread's answer.
- A forked process starts its own workers and leaves its parent's workers alone.
- An interrupt (Ctrl-C) in the middle of an answer ends the workers, so that no late reply is mistaken for the next one.
- Linux ends a worker with the thread that started it, so a thread that lives as long as this process starts workers.
- Short numbers, which cannot take long, are decided without a worker.
"""

from __future__ import annotations

import atexit
import dataclasses
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, Literal

import msgspec

from harness.core.records import AnswerKind, GradeRules, OfferedTool, Question, Sample
from harness.grading.grades import decide
from harness.grading.processes.pool import Pool, check_deadline, check_tolerances, question_on, verdict_on
from harness.grading.verifier import RULES
from reasoning_answers import Verdict
from reasoning_answers.host import EXHAUSTED, GRADER, conclude, is_short, search, texts_to_decide

_MAX_QUESTIONS = 256
"""Number of recent questions that are remembered, which saves time in a loop over answers to one reference."""

_names = count()
"""Question ids: a pool finds its decisions by id, so no two questions may share one."""


class LastingPool:
    """A pool whose workers are started when they are first needed; safe to call from several threads.

    workers: the number of processes; after a change, the next call starts a new pool. The workers end with this
    process.
    """

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._starter: ThreadPoolExecutor | None = None
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_to_parent)

    @contextmanager
    def acquire(self, deadline_s: float) -> Iterator[Pool]:
        """A context manager that gives only this thread the pool, with `deadline_s` seconds for each answer."""
        with self._lock:
            try:
                yield self._ready(deadline_s)
            except BaseException:
                self._close()  # a worker may still have to send an answer, which the next thread must not get
                raise

    def _ready(self, deadline_s: float) -> Pool:
        """Return the pool with this deadline; start another pool if its size or longest deadline does not fit."""
        pool = self._pool
        if pool is None or deadline_s > pool.longest_deadline or self.workers != pool.size:
            self._close()
            # The thread of the executor lives as long as the process; the kernel ends a worker with its starting
            # thread.
            self._starter = self._starter or ThreadPoolExecutor(1, "start-graders")
            starter = self._starter
            self._pool = pool = Pool(self.workers, deadline_s, start=lambda make: starter.submit(make).result())
        pool.deadline = deadline_s
        return pool

    def _close(self) -> None:
        """End the workers; the caller holds the lock."""
        if self._pool is not None:
            self._pool.__exit__()
        self._pool = None

    def close(self) -> None:
        """End the workers; the next call starts others."""
        with self._lock:
            self._close()

    def _leave_to_parent(self) -> None:
        """In a forked process: forget the parent's workers, and a lock that another thread may hold."""
        # A new lock: the thread that held the old one does not exist in the child.
        self._lock = threading.Lock()
        self._pool = self._starter = None


_lasting = LastingPool()


def lasting_verdict(
    reference: Any,
    sample: Sample,
    *,
    kind: AnswerKind | Literal["auto"],
    rules: GradeRules,
    choices: tuple[str, ...],
    tools: tuple[OfferedTool, ...],
    deadline_s: float,
    with_steps: bool = False,
) -> Verdict:
    """Return the verdict on one response, by a worker that stays alive, or by a separate worker if a verifier decides.

    reference: text, a number, or a list of the parts of one answer. kind: how it is compared; "auto" depends on its
    form. choices: the texts of the options of a choice question, A first. tools: the tools of a question about calls.
    with_steps: compute the steps now; otherwise they are computed when they are first read, since they take longer than
    the verdict. Raises `UsageError`: the reference is not an answer, a tolerance or the deadline is out of range, or a
    verifier is not trusted.
    """
    check_deadline(deadline_s)
    check_tolerances(rules)
    question = _question(reference, kind, rules, choices, tools)
    # A verifier's code may keep state, so that each of its answers gets a new process.
    if rules.grader != RULES:
        return verdict_on(question, sample, deadline_s=deadline_s)
    verdict = _verdict(question, sample, deadline_s, with_steps=with_steps)
    if with_steps:
        return verdict
    # If a worker reached a limit, deciding again for the steps could take as long and give another verdict.
    if verdict.rule in EXHAUSTED:
        explained = conclude(question, search(question, sample, with_steps=True), lambda _text: verdict)
        return dataclasses.replace(explained, unextracted=verdict.unextracted)
    return verdict.explained_by(lambda: _verdict(question, sample, deadline_s, with_steps=True).steps)


def _verdict(question: Question, sample: Sample, deadline_s: float, *, with_steps: bool) -> Verdict:
    """Return the verdict of the rules on one sample.

    Short answers are decided here: they cannot take long, and a message to a worker takes longer.
    """
    extraction = search(question, sample, with_steps=with_steps)
    if all(is_short(question, text) for text in texts_to_decide(question, extraction)):
        return conclude(question, extraction, partial(decide, question, with_steps=with_steps))
    with _lasting.acquire(deadline_s) as pool:
        return pool.ask_about(question, sample, extraction, GRADER, with_steps=with_steps).verdict()


_questions: dict[tuple[Any, ...], Question] = {}
"""The most recent questions, keyed by the arguments from which they were made."""


def _question(
    reference: Any,
    kind: AnswerKind | Literal["auto"],
    rules: GradeRules,
    choices: tuple[str, ...],
    tools: tuple[OfferedTool, ...],
) -> Question:
    """Return a question with this reference and a unique id; the same question for the same arguments, so that the pool
    finds its decisions by the id.
    """
    try:
        key = (type(reference), repr(reference), kind, msgspec.json.encode((rules, tools)), choices)
    except ValueError:  # Python refuses to write an integer of so many digits
        return question_on(reference, kind, rules, choices, tools, name=str(next(_names)))
    question = _questions.get(key)
    if question is None:
        if len(_questions) >= _MAX_QUESTIONS:
            _questions.clear()
        question = _questions[key] = question_on(reference, kind, rules, choices, tools, name=str(next(_names)))
    return question
