"""Decides which sample is requested next, and from which endpoint. No I/O and no threads; the time is a parameter.

One queue serves all benchmarks of a run, as a heap of questions:

- order "longest": first one sample of each question of unknown length, then always a sample of the question with the
longest samples so far, so that the run does not end with a few long samples and idle endpoints. A
  question without a finished sample counts as the longest: short samples finish first.
- order "rounds": sample r of every question before sample r + 1 of any; within a round as above. This order is for runs
that a budget or a target may end early: with longest-first across rounds, the short questions would be left out, which
would bias the score.

A sample is in one of four states; each arrow is a method:

    waiting ──next──▶ running ──finish──▶ done
       │                │  ▲
       │                │  └──next── returned ◀──advance── postponed ◀──give_back── running
       └─drop_question──┴──▶ gone: not requested again in this session

Returned samples are handed out before waiting ones, but not to the endpoint where they just failed while another
endpoint accepts samples. A sample returned `WORN` times goes after all others, so that a question that no server
answers does not delay other questions. A sample is handed out again only after it was returned, so it never runs twice
at the same time.

A slow endpoint gets a sample only if it would finish it before the faster endpoints at work have emptied the queue.
Each call takes O(log n) steps for n questions, plus one for each endpoint at work.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from harness.core.literals import Order
from harness.generation.dispatch.state import Lane, Work
from harness.runs.missing import Missing, Task

UNKNOWN_LENGTH = 4096.0
"""Expected length of a sample, in tokens, before the first sample has finished."""

SLOWER = 1.25
"""An endpoint is slow if its seconds per token exceed those of another one at work by this factor."""

PRUDENCE = 2.5
"""A slow endpoint gets a sample only if a sample of this multiple of the expected length would not finish last."""

WORN = 3
"""After this many returns, a sample goes after all others."""


class _Question(msgspec.Struct, eq=False):
    """One question in the queue. row: its position there.

    waiting: indices of samples not yet handed out, the next one last. tokens, n: sum and number of its known lengths.
    begun: whether a sample was handed out. failed: whether a request failed. tokens_left, n_unknown: expected tokens of
    the waiting samples, or their number while no length is known. entry: its current entry in the heap; None while no
    sample is waiting.
    """

    key: tuple[str, str]
    row: int
    waiting: list[int]
    tokens: float = 0.0
    n: int = 0
    begun: bool = False
    failed: bool = False
    tokens_left: float = 0.0
    n_unknown: int = 0
    entry: _Entry | None = None


class _Entry(NamedTuple):
    """A question in the heap, whose smallest entry is handed out first; ties are broken by row.

    wave: with order "rounds" the round of the question's next sample; else 0 before its first sample, then 1. rank:
    minus the expected tokens of a sample (infinite while unknown); 0 for a question with only failures. waiting: minus
    the number of its waiting samples.
    """

    wave: int
    rank: float
    waiting: int
    row: int
    question: _Question


class Scheduler:
    """Hands out the missing samples. Lengths are in tokens, times in monotonic seconds.

    may_start_round: with order "rounds", called with the number of each round before it starts; if it returns False,
    the round waits, and the next call of `next` calls it again.
    """

    def __init__(
        self,
        missing: Sequence[Missing],
        *,
        order: Order = "longest",
        may_start_round: Callable[[int], bool] | None = None,
    ) -> None:
        self._in_rounds = order == "rounds"
        self._may_start_round = may_start_round
        self._latest_round = -1
        """The latest round that `may_start_round` allowed to begin; rounds count from 0."""
        self._questions = {
            (o.benchmark, o.question_id): _Question((o.benchmark, o.question_id), row, sorted(o.indices, reverse=True))
            for row, o in enumerate(missing)
        }
        self._returned: dict[tuple[bool, Lane | None], deque[Work]] = {}
        """(whether `WORN`, the endpoint where they failed last) → returned samples."""
        self._postponed: list[tuple[float, Task, Work]] = []  # A heap, ordered by the time at which they are returned.
        self.retrying: set[Task] = set()
        """Samples whose request failed and which are waiting to be handed out again."""
        self._n_fresh = sum(len(question.waiting) for question in self._questions.values())
        self._tokens, self._n_known = 0.0, 0  # of the finished samples
        # For the samples not yet handed out: the tokens of those with a known length, and the number of the others.
        self._known_left, self._n_unknown = 0.0, 0
        self._heap: list[_Entry] = []  # An entry is outdated if its question now has a newer one.
        for question in self._questions.values():
            self._push(question)

    @property
    def n_waiting(self) -> int:
        """Samples that can still be handed out, now or later."""
        return self._n_fresh + len(self.retrying)

    @property
    def next_due(self) -> float | None:
        """Time in seconds at which the next postponed sample is returned; None if none is postponed."""
        return self._postponed[0][0] if self._postponed else None

    @property
    def mean_length(self) -> float:
        """Mean tokens of the finished samples; `UNKNOWN_LENGTH` before the first."""
        return self._tokens / self._n_known if self._n_known else UNKNOWN_LENGTH

    @property
    def tokens_left(self) -> float:
        """Expected number of tokens in the samples that have not been requested yet."""
        return max(0.0, self._known_left + self._n_unknown * self.mean_length)

    def next(self, lane: Lane, at_work: Sequence[Lane] = ()) -> Work | None:
        """Return the next sample for an endpoint; None if it should get none now (another endpoint may still get one).

        at_work: the endpoints that accept samples at present, so none that is set aside or paused.
        """
        if lane.set_aside:
            # It may be down. A sample not yet requested is the best probe, since a returned one may fail because of its
            # question; otherwise any sample will do, even one that failed there.
            return self._fresh(lane) or self._reissue(lane) or self._reissue(lane, worn=True)
        return self._reissue(lane, at_work) or self._fresh(lane, at_work) or self._reissue(lane, at_work, worn=True)

    def finish(self, work: Work, tokens: float) -> None:
        """Record that a sample is finished, with this many completion tokens."""
        question = self._questions[work.task[:2]]
        question.tokens += tokens
        question.n += 1
        self._tokens += tokens
        self._n_known += 1
        self._push(question)

    def give_back(self, work: Work, until: float) -> None:
        """Take back a sample whose request failed. It may be handed out again from time `until` (in seconds)."""
        self.retrying.add(work.task)
        heapq.heappush(self._postponed, (until, work.task, work))

    def advance(self, now: float) -> None:
        """Let postponed samples be handed out again once they are due: before fresh ones, unless `WORN`."""
        while self._postponed and self._postponed[0][0] <= now:
            _, task, work = heapq.heappop(self._postponed)
            question = self._questions[task.benchmark, task.question_id]
            question.failed = True
            self._push(question)
            work.returned += 1
            self._returned.setdefault((work.returned >= WORN, work.failed_at), deque()).append(work)

    def drop_question(self, benchmark: str, question_id: str) -> list[Task]:
        """Remove the samples of this question that were not yet requested from the queue, and return them."""
        question = self._questions[benchmark, question_id]
        dropped = [Task(benchmark, question_id, index) for index in reversed(question.waiting)]
        question.waiting.clear()
        self._push(question)
        self._n_fresh -= len(dropped)
        return dropped

    def _reissue(self, lane: Lane, at_work: Sequence[Lane] = (), *, worn: bool = False) -> Work | None:
        """Hand out a returned sample (a worn one if `worn`); None if there is none that the endpoint should get."""
        others = any(other is not lane for other in at_work)
        queues = [
            works
            for (is_worn, failed_at), works in self._returned.items()
            if works and is_worn is worn and not (failed_at is lane and others)
        ]
        if not queues:
            return None
        # The queue whose first sample was requested least often, so that no queue delays another for long.
        work = min(queues, key=lambda works: works[0].requests).popleft()
        self.retrying.discard(work.task)
        return work

    def _fresh(self, lane: Lane, at_work: Sequence[Lane] = ()) -> Work | None:
        """Hand out the next sample that was not yet requested; None if there is none that the endpoint should get."""
        while self._heap and self._heap[0] is not self._heap[0].question.entry:  # outdated: there is a newer one
            heapq.heappop(self._heap)
        if not self._heap:
            return None
        wave, question = self._heap[0].wave, self._heap[0].question
        if self._finishes_last(lane, question, at_work):
            return None
        if self._may_start_round is not None and wave > self._latest_round:
            if not self._may_start_round(wave):
                return None
            self._latest_round = wave
        question.begun = True
        self._n_fresh -= 1
        index = question.waiting.pop()
        self._push(question)
        return Work(Task(*question.key, index))

    def _finishes_last(self, lane: Lane, question: _Question, at_work: Sequence[Lane]) -> bool:
        """Whether clearly faster endpoints at work may empty the queue before this endpoint finishes one sample."""
        faster = [other for other in at_work if other.in_flight and lane.token_s > SLOWER * other.token_s > 0]
        tokens_per_s = sum(other.in_flight / other.token_s for other in faster)
        length = question.tokens / question.n if question.n else self.mean_length
        return PRUDENCE * length * lane.token_s * tokens_per_s > self.tokens_left if faster else False

    def _push(self, question: _Question) -> None:
        """Add a question to the heap and to the sums of what is left, using what is currently known about it.

        Called after every change of a question. Its contribution to the sums is replaced; its old entry stays in the
        heap, outdated, since a heap cannot remove an entry from its middle.
        """
        n, is_known = len(question.waiting), question.n > 0
        length = question.tokens / question.n if is_known else math.inf
        tokens_left, n_unknown = (n * length, 0) if is_known else (0.0, n)
        self._known_left += tokens_left - question.tokens_left
        self._n_unknown += n_unknown - question.n_unknown
        question.tokens_left, question.n_unknown, question.entry = tokens_left, n_unknown, None
        if not n:
            return
        # The smallest entry is handed out first.
        wave = question.waiting[-1] if self._in_rounds else int(question.begun)
        # A question that has only failed may be one that no server can answer.
        rank = 0.0 if question.failed and not is_known else length
        question.entry = _Entry(wave, -rank, -n, question.row, question)
        heapq.heappush(self._heap, question.entry)
        if len(self._heap) > 2 * len(self._questions) + 64:  # Limits the memory taken by outdated entries.
            self._heap = [q.entry for q in self._questions.values() if q.entry is not None]
            heapq.heapify(self._heap)
