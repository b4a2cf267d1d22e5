"""Rewards for reinforcement learning: the grader used for scores, with the signatures of TRL, open-r1 and verl.

    GRPOTrainer(reward_funcs=[accuracy_reward, format_reward], …)          # columns: prompt, solution
    custom_reward_function.path=…/harness/rewards.py                       # verl: compute_score

The functions are those of `reasoning_answers.rewards`, which describes them. Here, answers are graded by worker
processes that persist between batches and are limited in time and memory: a hostile completion loses only its own
reward, and neither stalls nor kills the trainer. The processes are started as programs, never forked, so a trainer with
a GPU may call from any thread; a forked trainer gets its own processes. Errors are `UsageError`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from harness.core.cores import granted_cores
from harness.core.errors import UsageError
from harness.core.records import Question, VerdictName
from harness.grading.processes import pool as grading
from harness.grading.processes.persistent_workers import LastingPool
from harness.presets.grading import DEADLINE_SECONDS
from reasoning_answers import rewards

P = ParamSpec("P")
R = TypeVar("R")

_pool = LastingPool(max(1, granted_cores() // 2))
_deadline_s = DEADLINE_SECONDS


def configure(*, workers: int | None = None, deadline_s: float | None = None) -> None:
    """Set how answers are graded in this process, starting with the next batch; None leaves a setting unchanged.

    workers: number of grading processes; default: half the cores. deadline_s: time limit per answer, in seconds;
    default: 2. Raises `UsageError`.
    """
    global _deadline_s
    if workers is not None:
        if workers < 1:
            raise UsageError("expected at least 1 worker", field="workers", value=workers)
        _pool.workers = workers
    if deadline_s is not None:
        grading.check_deadline(deadline_s)
        _deadline_s = deadline_s


def _outcomes(batch: rewards.Batch) -> list[VerdictName]:
    """Return the outcome of each answer, decided by worker processes."""
    questions: dict[int, Question] = {}
    for question, _ in batch:
        if id(question) not in questions:
            questions[id(question)] = Question(
                benchmark="",
                question_id=str(len(questions)),
                references=question.references,
                kind=question.kind,
                row_digest="",
                prompt_digest="",
            )
    with _pool.acquire(_deadline_s) as pool:
        return grading.outcomes(pool, [(questions[id(question)], found) for question, found in batch])


def _by_workers(function: Callable[P, R]) -> Callable[P, R]:
    """Return a reward function whose answers are graded by worker processes."""

    @wraps(function)
    def graded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with rewards.graded_by(_outcomes):
                return function(*args, **kwargs)
        except ValueError as error:
            raise UsageError(str(error)) from error

    # Trainers send functions to other processes by their module and name.
    graded.__module__ = __name__
    return graded


accuracy_reward = _by_workers(rewards.accuracy_reward)
format_reward = _by_workers(rewards.format_reward)
len_reward = _by_workers(rewards.len_reward)
compute_score = _by_workers(rewards.compute_score)
compute_scores = _by_workers(rewards.compute_scores)
__getattr__ = rewards.__getattr__
