"""One worker that lives as long as this process, for verdicts asked one by one: `harness.grade` in a loop.

Starting a worker takes a fifth of a second, an answer some microseconds. So the first call starts a worker and the
others use it, under the same bounds: an answer beyond its deadline or memory ends the worker, and the next call starts
another.

- Threads take turns; the answer of one never reaches another.
- A forked process starts a worker of its own, and leaves its parent's alone.
- An interrupt (Ctrl-C) in the middle of an answer ends the worker, so that no late reply is taken for the next one.
- Linux ends a worker with the thread that started it. So a thread that lives as long as the process starts them.
- Numbers of few digits, which cannot take long, are decided without the worker.
"""

from __future__ import annotations

import atexit
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, Literal

import msgspec

from harness.core.records import AnswerKind, GradeRules, Question, Sample
from harness.grading.processes.pool import Pool, check_deadline, check_tolerances, question_on, sample_of, verdict_with
from harness.grading.verdict import Verdict

_MAX_DECISIONS = 4_096
"""Decisions that are remembered for equal answers; beyond this number all are dropped."""

_MAX_QUESTIONS = 256
"""Questions that are remembered, with which a loop over answers to one reference saves time."""

_names = count()


class _LastingPool:
    """A pool with one worker, started when it is first needed; safe to call from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._starter: ThreadPoolExecutor | None = None

    def verdict(self, question: Question, sample: Sample, deadline_s: float) -> Verdict:
        """The verdict on one response, with its steps, within `deadline_s` seconds for each of its answers."""
        with self._lock:
            try:
                return verdict_with(self._ready(deadline_s), question, sample)
            except BaseException:
                self._close()  # the worker may still owe an answer
                raise

    def _ready(self, deadline_s: float) -> Pool:
        pool = self._pool
        if pool is None or deadline_s > pool.longest_deadline:
            self._close()
            self._starter = self._starter or ThreadPoolExecutor(1, "start-graders")
            starter = self._starter
            self._pool = pool = Pool(1, deadline_s, start=lambda make: starter.submit(make).result())
        if len(pool.decisions) > _MAX_DECISIONS:
            pool.forget()
        pool.deadline = deadline_s
        return pool

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.__exit__()
        self._pool = None

    def close(self) -> None:
        """End the worker; the next call starts another."""
        with self._lock:
            self._close()

    def leave_to_parent(self) -> None:
        """In a forked process: forget the worker, which answers the parent, and a lock that another thread may hold."""
        self._lock = threading.Lock()
        self._pool = self._starter = None


_lasting = _LastingPool()
atexit.register(_lasting.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lasting.leave_to_parent)


def lasting_verdict(
    reference: Any,
    response: str,
    *,
    kind: AnswerKind | Literal["auto"],
    rules: GradeRules,
    choices: tuple[str, ...],
    deadline_s: float,
) -> Verdict:
    """As `pool.verdict_on`, by the worker that lives on; not with a verifier of the benchmark's own."""
    check_deadline(deadline_s)
    check_tolerances(rules)
    return _lasting.verdict(_question(reference, kind, rules, choices), sample_of(response), deadline_s)


_questions: dict[tuple[Any, ...], Question] = {}


def _question(
    reference: Any, kind: AnswerKind | Literal["auto"], rules: GradeRules, choices: tuple[str, ...]
) -> Question:
    """The question of a reference, under a name that no other one has: decisions are remembered by it."""
    try:
        key = (type(reference), repr(reference), kind, msgspec.json.encode(rules), choices)
    except ValueError:  # an integer of so many digits that Python does not write it
        return question_on(reference, kind, rules, choices, name=str(next(_names)))
    question = _questions.get(key)
    if question is None:
        if len(_questions) >= _MAX_QUESTIONS:
            _questions.clear()
        question = _questions[key] = question_on(reference, kind, rules, choices, name=str(next(_names)))
    return question
