"""Decides which sample is asked next, and at which endpoint. No I/O, no threads; the clock is a parameter.

One queue serves all benchmarks of a run, as a heap of questions:

- order "longest": first one sample of each question whose length nobody knows, then always a sample of the question
  whose samples are the longest so far, so that the run does not end with a few long samples and idle endpoints. A
  question without a finished sample counts as the longest: short samples finish first.
- order "rounds": sample r of every question before sample r + 1 of any; within a round as above. It is for runs that a
  budget or a target may end early: with longest-first across rounds the short questions would be left out, which biases
  the score.

A sample is in one of four states; each arrow is a method:

    waiting ──next──▶ running ──finish──▶ done
       │                │  ▲
       │                │  └──next── returned ◀──give_back── (postponed, in `retry`) ◀── running
       └─drop_question──┴──drop──▶ gone: not asked again in this session

A returned sample is handed out before all that waits, but not to the endpoint where it just failed while another one
takes samples. A sample that came back `WORN` times goes after all others, so that a question that no server answers
delays no other. A sample is handed out again only after `give_back`, so it never runs twice at a time.

A slow endpoint gets a sample only if it would finish it before the faster endpoints at work have emptied the queue.
Each call takes O(log n) steps for n questions, beside one for each endpoint.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from harness.generation.plan import Order
from harness.runs.record import Owed, Task

UNKNOWN_LENGTH = 4096.0
"""Expected length of a sample, in tokens, before the first sample has finished."""

SLOWER = 1.25
"""An endpoint is slow if its seconds per token exceed those of another one at work by this factor."""

PRUDENCE = 2.5
"""A slow endpoint takes a sample only if this multiple of its expected length would not finish last."""

WORN = 3
"""A sample that came back this many times goes after all others."""

_CURIOSITY = 4.0
"""Raises the rank of a question by this fraction of its length over 1 + samples handed out: few samples say little."""

_ANY = -1
"""Stands for the endpoint where a returned sample failed if the failure was not the endpoint's."""


class _Question(msgspec.Struct, eq=False):
    """One question of the queue.

    waiting: sample indices that were not handed out, the next one last. tokens, n: sum and number of its known lengths.
    n_handed: samples handed out. failed: whether a request failed. left, n_unknown: tokens of the waiting samples, or
    their number while no length is known, as counted by the scheduler.
    """

    benchmark: str
    question_id: str
    waiting: list[int]
    tokens: float = 0.0
    n: int = 0
    n_handed: int = 0
    failed: bool = False
    left: float = 0.0
    n_unknown: int = 0
    stamp: int = 0


class _Running(NamedTuple):
    """A sample that was handed out. question: index in the queue. started: the clock's second."""

    question: int
    endpoint: int
    started: float


class _Speed(msgspec.Struct, eq=False):
    """One endpoint: whether it takes samples at present, how many it works on, and its speed.

    seconds, tokens: sums over its finished samples, in which recent ones count most.
    """

    available: bool = True
    n_running: int = 0
    seconds: float = 0.0
    tokens: float = 0.0

    @property
    def pace(self) -> float:
        """Seconds per token; 0 while unknown."""
        return self.seconds / self.tokens if self.tokens else 0.0


class Scheduler:
    """Hands out the missing samples. Lengths are in tokens, times in seconds of `clock` (monotonic).

    prior: expected length by (benchmark, question_id), e.g. means of an earlier run; counts as two samples.
    may_start_round: with order "rounds", called with the number of each round before it starts; False holds the round
    back, and the next call of `next` asks once more.
    """

    def __init__(
        self,
        owed: Sequence[Owed],
        clock: Callable[[], float],
        *,
        order: Order = "longest",
        n_endpoints: int = 1,
        prior: Mapping[tuple[str, str], float] | None = None,
        may_start_round: Callable[[int], bool] | None = None,
    ) -> None:
        self._clock = clock
        self._in_rounds = order == "rounds"
        self._may_start_round = may_start_round
        self._round = -1
        self._questions = [_Question(o.benchmark, o.question_id, sorted(o.indices, reverse=True)) for o in owed]
        self._rows = {(q.benchmark, q.question_id): row for row, q in enumerate(self._questions)}
        if len(self._rows) < len(self._questions):
            raise ValueError("a question is in the plan twice")
        self._endpoints = [_Speed() for _ in range(n_endpoints)]
        self._running: dict[Task, _Running] = {}
        # By (whether worn, the endpoint where they failed last): samples that came back.
        self._returned: dict[tuple[bool, int], deque[Task]] = {}
        self._n_returned: dict[Task, int] = {}
        self._failed_at: dict[Task, int] = {}
        self._n_waiting = sum(len(q.waiting) for q in self._questions)
        self._tokens, self._n_known = 0.0, 0
        self._left, self._n_unknown = 0.0, 0
        # (wave, -rank, -samples waiting, index in the queue, stamp) of questions; outdated if the question's is newer.
        self._heap: list[tuple[int, float, int, int, int]] = []
        for key, length in (prior or {}).items():
            if key in self._rows:
                question = self._questions[self._rows[key]]
                question.tokens, question.n = 2 * length, 2
        for row in range(len(self._questions)):
            self._push(row)

    @property
    def n_waiting(self) -> int:
        """Samples that can still be handed out."""
        return self._n_waiting + sum(map(len, self._returned.values()))

    @property
    def returned(self) -> list[Task]:
        """Samples whose request failed, and which wait to be handed out again."""
        return [task for tasks in self._returned.values() for task in tasks]

    @property
    def mean_length(self) -> float:
        """Mean tokens of the finished samples; `UNKNOWN_LENGTH` before the first."""
        return self._tokens / self._n_known if self._n_known else UNKNOWN_LENGTH

    @property
    def tokens_left(self) -> float:
        """Tokens that the waiting samples are expected to bring."""
        return self._left + self._n_unknown * self.mean_length

    def next(self, endpoint: int = 0, *, probe: bool = False) -> Task | None:
        """Return the next sample for `endpoint`; None if it should take none now (another endpoint may still get one).

        probe: the endpoint may be down. Then a sample that was not asked yet goes first: a returned one may fail by its
        question's fault.
        """
        fresh, again = partial(self._fresh, endpoint, probe=probe), partial(self._again, endpoint)
        for take in (fresh, again) if probe else (again, fresh):
            if (task := take()) is not None:
                break
        else:
            task = again(worn=True)
        if task is not None:
            self._running[task] = _Running(self._rows[task.benchmark, task.question_id], endpoint, self._clock())
            self._endpoints[endpoint].n_running += 1
        return task

    def finish(self, task: Task, tokens: float) -> None:
        """Note that `task` is done, with `tokens` completion tokens."""
        running = self.drop(task)
        speed, question = self._endpoints[running.endpoint], self._questions[running.question]
        speed.seconds = 0.98 * speed.seconds + self._clock() - running.started
        speed.tokens = 0.98 * speed.tokens + tokens
        question.tokens += tokens
        question.n += 1
        self._tokens += tokens
        self._n_known += 1
        self._push(running.question)

    def give_back(self, task: Task) -> None:
        """Take back `task`, whose request failed: it is handed out again, before all others unless it is worn."""
        running = self._end(task)
        self._questions[running.question].failed = True
        self._push(running.question)
        n = self._n_returned[task] = self._n_returned.get(task, 0) + 1
        key = n >= WORN, self._failed_at.get(task, _ANY)
        self._returned.setdefault(key, deque()).append(task)

    def steer_away(self, task: Task) -> None:
        """Note that `task` failed at its endpoint: it next goes to another one, if such a one is up."""
        self._failed_at[task] = self._running[task].endpoint

    def drop(self, task: Task) -> _Running:
        """End the running `task`: it is not asked again in this session."""
        self._n_returned.pop(task, None)
        self._failed_at.pop(task, None)
        return self._end(task)

    def drop_question(self, benchmark: str, question_id: str) -> list[Task]:
        """Remove the waiting samples of this question from the queue, and return them; running ones go on."""
        row = self._rows[benchmark, question_id]
        question = self._questions[row]
        fresh = [Task(benchmark, question_id, index) for index in reversed(question.waiting)]
        back = [task for task in self.returned if task[:2] == (benchmark, question_id)]
        for key, tasks in self._returned.items():
            self._returned[key] = deque(task for task in tasks if task not in back)
        for task in back:
            del self._n_returned[task]
        question.waiting.clear()
        self._n_waiting -= len(fresh)
        self._push(row)
        return back + fresh

    def add_endpoint(self) -> None:
        """Add an endpoint, with the next number."""
        self._endpoints.append(_Speed())

    def set_available(self, available: Sequence[bool]) -> None:
        """Set for each endpoint whether it takes samples at present; one that is set aside or paused does not."""
        for speed, is_available in zip(self._endpoints, available, strict=True):
            speed.available = is_available

    def _again(self, endpoint: int, *, worn: bool = False) -> Task | None:
        """Hand out a returned sample, worn or not; None if there is none that `endpoint` should get."""
        others = any(speed.available for number, speed in enumerate(self._endpoints) if number != endpoint)
        for (is_worn, failed_at), tasks in self._returned.items():
            if tasks and is_worn is worn and not (failed_at == endpoint and others):
                return tasks.popleft()
        return None

    def _fresh(self, endpoint: int, *, probe: bool) -> Task | None:
        """Hand out the next sample that was not asked yet; None if there is none that `endpoint` should get."""
        while self._heap and self._heap[0][4] != self._questions[self._heap[0][3]].stamp:
            heapq.heappop(self._heap)
        if not self._heap:
            return None
        wave, _, _, row, _ = self._heap[0]
        question = self._questions[row]
        if not probe and self._finishes_last(endpoint, question):
            return None
        if self._may_start_round is not None and wave > self._round:
            if not self._may_start_round(wave):
                return None
            self._round = wave
        question.n_handed += 1
        self._n_waiting -= 1
        index = question.waiting.pop()
        self._push(row)
        return Task(question.benchmark, question.question_id, index)

    def _finishes_last(self, endpoint: int, question: _Question) -> bool:
        """Whether clearly faster endpoints at work may empty the queue before this endpoint finishes one sample."""
        pace = self._endpoints[endpoint].pace
        faster = [e for e in self._endpoints if e.available and e.n_running and pace > SLOWER * e.pace > 0]
        tokens_per_s = sum(e.n_running / e.pace for e in faster)
        length = question.tokens / question.n if question.n else self.mean_length
        return PRUDENCE * length * pace * tokens_per_s > self.tokens_left if faster else False

    def _push(self, row: int) -> None:
        """Enter a question into the heap by what is known of it now; called after every change of a question.

        row: its index in the queue.
        """
        question = self._questions[row]
        question.stamp += 1
        n, is_known = len(question.waiting), question.n > 0
        length = question.tokens / question.n if is_known else math.inf
        left, n_unknown = (n * length, 0) if is_known else (0.0, n)
        self._left += left - question.left
        self._n_unknown += n_unknown - question.n_unknown
        question.left, question.n_unknown = left, n_unknown
        if not n:
            return
        wave = question.waiting[-1] if self._in_rounds else int(is_known or question.n_handed > 0)
        # A question that only failed may be one that no server answers.
        rank = 0.0 if question.failed and not is_known else length * (1 + _CURIOSITY / (1 + question.n_handed))
        heapq.heappush(self._heap, (wave, -rank, -n, row, question.stamp))
        if len(self._heap) > 2 * len(self._questions) + 64:  # Bounds the memory of outdated entries.
            self._heap = [entry for entry in self._heap if entry[4] == self._questions[entry[3]].stamp]
            heapq.heapify(self._heap)

    def _end(self, task: Task) -> _Running:
        running = self._running.pop(task)
        self._endpoints[running.endpoint].n_running -= 1
        return running
