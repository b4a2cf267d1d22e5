"""Decides which sample is asked next, and at which endpoint. No I/O, no threads; the clock is a parameter.

One queue serves all benchmarks of a run. The queue is worked off in *waves*. Within a wave the sample that is expected
to be longest goes first, so that the run does not end with a few long samples and idle endpoints.

- order "longest": wave 1 takes one sample of each question whose length nobody knows, wave 2 all the rest.
- order "rounds": wave r holds sample r of every question. It is for runs that a budget or a target may end early: with
  longest-first across rounds, the short questions would be left out, which biases the score.

A sample is in one of four states; each arrow is a method:

    waiting ──next──▶ running ──finish──▶ done
       │                │  ▲
       │                │  └──next── returned ◀──give_back── (postponed, in `retry`) ◀── running
       └─drop_waiting───┴──drop──▶ gone: not asked again in this session

| a returned sample that | is handed out |
| --- | --- |
| came back once or twice | before all that waits, to an endpoint that has not failed it, if one is up |
| came back `WORN` times | after all other samples, so that a question that no server answers delays no other |
| is of a question that failed `WORN` times and was never answered | when every question was asked once |
| is in `elsewhere_only` | to an endpoint that has not failed it, or never |

Guarantees: a sample is handed out again only after `give_back`, so it never runs twice at a time (keeping the first of
two answers would favour short ones).

With several endpoints, a faster one takes the longest sample, except that every eighth of its samples is a random one.
A clearly slower one takes a random sample or the shortest, but none that it would finish after the faster endpoints
have emptied the queue. "Random" is the order of a checksum of each sample. The random samples give every endpoint
questions of every kind, so that a score can tell a broken endpoint from one that got harder questions
(`harness.scoring.by_endpoint`). Among questions that are about equally urgent, an endpoint avoids those whose long
prompt is in the prefix caches of other endpoints only.

Long: the order of samples is one structure, which every method of it reads and changes.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b

import msgspec

from harness.generation.forecast import UNASKED
from harness.generation.plan import Order
from harness.runs.record import Owed, Task

UNKNOWN_LENGTH = 4096.0
"""Expected length of a sample, in tokens, before the first sample has finished."""

SLOWER = 1.25
"""An endpoint counts as slow if its seconds per token exceed those of the fastest one available by this factor."""

MANY_QUESTIONS = 5000
"""Number of questions above which all questions with unknown lengths are counted together."""

REFRESH_FINISHES = 8
"""The order is computed anew after this many finished samples, or an eighth of the wave's questions if that is more."""

WORN = 3
"""A sample that came back this many times counts as worn: it goes after all others."""

_CENSORED = 1.3
"""A running sample that exceeds its expected length is expected to reach this multiple of its present length."""

_CURIOSITY = 1.0
"""The urgency of an untried question is raised by this fraction; the raise falls as 1/(1 + samples handed out)."""

_TIED_FRACTION = 0.8
"""Questions whose urgency is at least this fraction of the best are tied."""

_RANDOM_EVERY = 8
"""With several endpoints, one in this many samples of an endpoint is a random sample of the wave, not the longest."""

_MAX_SEARCHED = 16
"""Largest number of tied questions that are searched for a prompt that the endpoint has read before."""

_PRUDENCE = 1.6
"""A slow endpoint takes the shortest sample only if this multiple of its expected length would not finish last."""

_PRUDENCE_RANDOM = 4.0
"""The same multiple for a random sample; it is larger because the lengths of random samples vary more."""


_Entry = tuple[float, int, int]
"""A question's place in a heap: (rank, samples handed out, index in the queue). The lowest rank is handed out first.

An entry is outdated if a sample of its question was handed out after the entry was made.
"""


class _Question(msgspec.Struct, eq=False):
    """One question of the queue.

    waiting: sample indices that were not handed out. prior: expected tokens from an earlier run; None without one.
    known_tokens, n_known: tokens and number of finished samples. censored_tokens, n_censored: the same of running
    samples that already exceed the expected length. n_in_wave: how many of `waiting`, from its start, belong to the
    present wave. n_handed: samples handed out. n_returned: failed requests. seen_by: endpoints that have read the
    question's prompt, if the prompt is long.
    """

    benchmark: str
    question_id: str
    waiting: list[int]
    prior: float | None
    known_tokens: float = 0.0
    n_known: int = 0
    censored_tokens: float = 0.0
    n_censored: int = 0
    n_in_wave: int = 0
    n_handed: int = 0
    n_returned: int = 0
    long_prompt: bool = False
    seen_by: frozenset[int] = frozenset()


class _Running(msgspec.Struct, eq=False):
    """A sample that was handed out.

    question: index of its question in the queue. endpoint: number of the endpoint that got it. started: the clock's
    second at which it was handed out.
    """

    question: int
    endpoint: int
    started: float


class _Speed(msgspec.Struct, eq=False):
    """One endpoint: whether it takes samples at present, its speed, and the samples that it has.

    seconds, tokens: sums over its finished samples, in which recent ones count most. n_taken: samples that it got from
    waves. running: samples that it works on.
    """

    available: bool = True
    seconds: float = 0.0
    tokens: float = 0.0
    n_taken: int = 0
    running: set[Task] = msgspec.field(default_factory=set)

    @property
    def seconds_per_token(self) -> float | None:
        return self.seconds / self.tokens if self.tokens else None

    def observe(self, seconds: float, tokens: float) -> None:
        self.seconds = 0.98 * self.seconds + seconds
        self.tokens = 0.98 * self.tokens + tokens


class Scheduler:
    """Hands out the missing samples. Lengths are in tokens, times in seconds of `clock` (monotonic).

    prior: expected length by (benchmark, question_id), e.g. means of an earlier run; such questions need no first wave.
    may_start_round: with order "rounds", called with the number of each round before it starts; False
    holds the round back, and the next call of `next` asks once more. max_tokens: by benchmark; no sample is expected to
    be longer. long_prompts: (benchmark, question_id) of questions with prompts so long that a server's cache of them
    saves time.
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
        max_tokens: Mapping[str, int] | None = None,
        long_prompts: Collection[tuple[str, str]] = (),
    ) -> None:
        self._clock = clock
        self._prior = prior or {}
        self._questions = [
            _Question(o.benchmark, o.question_id, sorted(o.indices), self._prior.get((o.benchmark, o.question_id)))
            for o in owed
        ]
        for question in self._questions:
            question.long_prompt = (question.benchmark, question.question_id) in long_prompts
        self._rows: dict[str, dict[str, int]] = {}  # By benchmark and question.
        for i, q in enumerate(self._questions):
            if self._rows.setdefault(q.benchmark, {}).setdefault(q.question_id, i) != i:
                raise ValueError("a question is in the plan twice")
        self._endpoints = [_Speed() for _ in range(n_endpoints)]
        self._running: dict[Task, _Running] = {}
        self._returned: deque[Task] = deque()
        self._failed_by: dict[Task, set[int]] = {}
        self.elsewhere_only: set[Task] = set()
        """Samples that go only to endpoints which have not failed them."""
        self._n_returned: dict[Task, int] = {}
        self._n_waiting = sum(len(q.waiting) for q in self._questions)
        self._n_unasked = sum(bool(q.waiting) for q in self._questions)
        # Tokens and number of finished samples.
        self._known: dict[str, list[float]] = {q.benchmark: [0.0, 0] for q in self._questions}
        self._known_of_all: list[float] = [0.0, 0]
        self._finishes = 0
        bounds = max_tokens or {}
        self._guesses = {name: min(UNKNOWN_LENGTH, bounds.get(name, UNKNOWN_LENGTH)) for name in self._known}
        self._in_rounds = order == "rounds"
        self._may_start_round = may_start_round
        self._n_waves = 0
        # Heaps of the wave's questions: the most urgent first, the shortest first, in random order.
        self._long: list[_Entry] = []
        self._short: list[_Entry] = []
        self._random: list[_Entry] | None = None  # Made when it is needed.

    # ---- what the workers call

    @property
    def n_waiting(self) -> int:
        """Samples that can still be handed out."""
        return self._n_waiting + len(self._returned)

    def next(self, endpoint: int = 0, *, probe: bool = False) -> Task | None:
        """Return the next sample for `endpoint`; None if it should take none now (another endpoint may still get one).

        probe: the endpoint may be down. Then it gets a sample of the question with the fewest failed requests, so that
        a failure is unlikely to be the question's fault.
        """
        if probe:
            task = self._probe(endpoint)
        elif self._returned:
            task = self._from_returned(endpoint) or self._from_wave(endpoint)
            if task is None:
                task = self._from_returned(endpoint, worn=True)
        else:
            task = self._from_wave(endpoint)
        if task is not None:
            row = self._rows[task.benchmark][task.question_id]
            self._running[task] = _Running(row, endpoint, self._clock())
            self._endpoints[endpoint].running.add(task)
            question = self._questions[row]
            if question.long_prompt:
                question.seen_by |= {endpoint}
        return task

    def finish(self, task: Task, tokens: float) -> None:
        """Note that `task` is done, with `tokens` completion tokens."""
        running = self._end(task)
        self._forget(task)
        self._endpoints[running.endpoint].observe(self._clock() - running.started, tokens)
        question = self._questions[running.question]
        question.known_tokens += tokens
        question.n_known += 1
        for total in (self._known[question.benchmark], self._known_of_all):
            total[0] += tokens
            total[1] += 1
        self._finishes += 1
        # Without waiting samples there is nothing to order, and a refresh at each finish would take n² steps in all.
        if self._finishes >= max(REFRESH_FINISHES, len(self._long) // 8) and self._n_waiting:
            self._refresh()

    def give_back(self, task: Task) -> None:
        """Take back `task`, whose request failed: it is handed out again, before all others unless it is worn."""
        self._questions[self._end(task).question].n_returned += 1
        self._n_returned[task] = self._n_returned.get(task, 0) + 1
        self._returned.append(task)

    def steer_away(self, task: Task) -> None:
        """Note that `task` failed at its endpoint: it next goes to one where it has not failed, if such a one is up."""
        self._failed_by.setdefault(task, set()).add(self._running[task].endpoint)

    def leave_to_others(self, task: Task, endpoints: Collection[int]) -> bool:
        """Never hand `task` again to an endpoint where it failed; return whether one of `endpoints` is left for it."""
        self.elsewhere_only.add(task)
        return not self._failed_by[task].issuperset(endpoints)

    def stranded(self, endpoints: Collection[int]) -> list[Task]:
        """Return the waiting samples of `elsewhere_only` that have already failed at every one of `endpoints`."""
        waiting = self.elsewhere_only.intersection(self._returned)
        return sorted(task for task in waiting if self._failed_by[task].issuperset(endpoints))

    def drop(self, task: Task) -> None:
        """End the running `task`: it is not asked again in this session and stays missing."""
        self._end(task)
        self._forget(task)

    def drop_question(self, benchmark: str, question_id: str) -> list[Task]:
        """Remove the waiting samples of this question from the queue, and return them; running ones go on."""
        question = self._questions[self._rows[benchmark][question_id]]
        mine = [t for t in self._returned if (t.benchmark, t.question_id) == (benchmark, question_id)]
        for task in mine:
            self._returned.remove(task)
        mine += [Task(benchmark, question_id, i) for i in question.waiting]
        self._n_waiting -= len(question.waiting)
        self._n_unasked -= bool(question.waiting) and not question.n_handed
        question.waiting.clear()
        question.n_in_wave = 0
        return mine

    def drop_waiting(self, task: Task) -> bool:
        """Remove the waiting `task` from the queue of this session; return False if it was not waiting."""
        if task in self._returned:
            self._returned.remove(task)
            self._forget(task)
            return True
        row = self._rows.get(task.benchmark, {}).get(task.question_id)
        if row is None:
            return False
        question = self._questions[row]
        if task.sample_index not in question.waiting:
            return False
        # In the last wave all waiting samples are of the wave; in an earlier one, only the first of them can be.
        if question.waiting[0] == task.sample_index:
            question.n_in_wave = max(0, question.n_in_wave - 1)
        question.waiting.remove(task.sample_index)
        question.n_in_wave = min(question.n_in_wave, len(question.waiting))
        self._n_waiting -= 1
        self._n_unasked -= not question.waiting and not question.n_handed
        return True

    def waiting(self, question_id: str) -> list[Task]:
        """Return the samples of this question, in any benchmark, that may still be handed out."""
        tasks = [task for task in self._returned if task.question_id == question_id]
        mine = (q for q in self._questions if q.question_id == question_id)
        return tasks + [Task(q.benchmark, q.question_id, index) for q in mine for index in q.waiting]

    def add_endpoint(self) -> None:
        """Add an endpoint, with the next number."""
        self._endpoints.append(_Speed())
        self._refresh()

    def set_available(self, available: Sequence[bool]) -> None:
        """Set for each endpoint whether it takes samples at present; one that is set aside or paused does not."""
        for speed, is_available in zip(self._endpoints, available, strict=True):
            speed.available = is_available

    def waiting_by_question(self) -> dict[tuple[str, str], int]:
        """The number of samples that can still be handed out, by (benchmark, question_id).

        With more than `MANY_QUESTIONS` questions, those of unknown length count together, as (benchmark, `UNASKED`).
        Samples whose request failed always count for their own question.
        """
        many = len(self._questions) > MANY_QUESTIONS
        counts: dict[tuple[str, str], int] = {}
        for q in self._questions:
            if q.waiting:
                length_is_known = q.n_known > 0 or q.prior is not None
                key = (q.benchmark, q.question_id if length_is_known or not many else UNASKED)
                counts[key] = counts.get(key, 0) + len(q.waiting)
        for task in self._returned:
            question = task.benchmark, task.question_id
            counts[question] = counts.get(question, 0) + 1
        return counts

    @property
    def returned(self) -> list[Task]:
        """Samples whose request failed, and which wait to be handed out again."""
        return list(self._returned)

    # ---- waves

    def _begin_wave(self) -> bool:
        """Queue the samples of the next wave; return whether there is one."""
        begun = self._begin_round() if self._in_rounds else self._begin_longest()
        self._n_waves += begun
        return begun

    def _begin_longest(self) -> bool:
        """Queue the next wave of order "longest"; return whether it has samples.

        The first wave takes one sample of each question of unknown length. The next wave, or the first one if all
        lengths are known, takes all the rest.
        """
        if not self._n_waves:
            unknown = [q for q in self._questions if q.prior is None and q.waiting]
            for question in unknown:
                question.n_in_wave = 1
            if unknown:
                return True
        for question in self._questions:
            question.n_in_wave = len(question.waiting)
        return self._n_waiting > 0

    def _begin_round(self) -> bool:
        """Queue the next wave of order "rounds"; return False if none waits, or `may_start_round` holds it back."""
        pending = [q for q in self._questions if q.waiting]
        if not pending:
            return False
        number = min(q.waiting[0] for q in pending)
        if self._may_start_round is not None and not self._may_start_round(number):
            return False
        for question in pending:
            question.n_in_wave = int(question.waiting[0] == number)
        return True

    def _from_returned(self, endpoint: int, *, worn: bool = False) -> Task | None:
        """Return a sample whose request failed before, to be asked again at `endpoint`; None without one.

        It is the first that has not failed at `endpoint`, or that has failed at all available endpoints. worn: choose
        among the samples that must wait for all others (`_is_worn`), not among the rest.
        """
        up = {number for number, speed in enumerate(self._endpoints) if speed.available}
        for task in self._returned:
            if self._is_worn(task) is not worn:
                continue
            failed_by = self._failed_by.get(task, ())
            if endpoint not in failed_by or (up.issubset(failed_by) and task not in self.elsewhere_only):
                self._returned.remove(task)
                return task
        return None

    def _is_worn(self, task: Task) -> bool:
        """Whether `task`, which failed before, must wait until all other samples are handed out.

        A task must wait if it failed `WORN` times. If `WORN` requests of its question failed and none was answered, it
        must wait, too, while there are questions that were not asked yet.
        """
        question = self._questions[self._rows[task.benchmark][task.question_id]]
        hopeless = question.n_returned >= WORN and not question.n_known
        return self._n_returned.get(task, 0) >= WORN or (hopeless and self._n_unasked > 0)

    def _from_wave(self, endpoint: int) -> Task | None:
        """Hand out a sample of the present wave to `endpoint`; None if it should take none now.

        A fast endpoint gets the sample expected to be longest, and every eighth time a random one. A slow endpoint gets
        a random one, else the shortest, but none that would end after all others.
        """
        speed = self._endpoints[endpoint]
        while self._n_waiting:
            slow = self._is_slow(endpoint)
            random = len(self._endpoints) > 1 and (slow or speed.n_taken % _RANDOM_EVERY == _RANDOM_EVERY - 1)
            if slow:
                row, held_back = self._pop_for_slow(endpoint)
                if held_back:
                    return None
            else:
                row = self._pop(self._in_random_order() if random else self._long)
            if row is not None:
                speed.n_taken += 1
                return self._take(row if random else self._prefer_seen_prompt(endpoint, row))
            if not self._open_wave():
                return None
        return None

    def _pop_for_slow(self, endpoint: int) -> tuple[int | None, bool]:
        """Take a question for a slow endpoint: a random one, else the shortest.

        Returns (its index in the queue, False); (None, False) if the wave is empty; (None, True) if each would be the
        last sample of the run to end, because the faster endpoints finish all others before it. A sample is assumed to
        be `_PRUDENCE` times as long as expected.
        """
        mine = self._endpoints[endpoint].seconds_per_token
        assert mine is not None
        faster = self._faster_at_work(mine)
        drain = self._drain(faster)
        longest: float | None = None
        for heap, entry, prudence in (
            (self._in_random_order(), self._random_entry, _PRUDENCE_RANDOM),
            (self._short, self._short_entry, _PRUDENCE),
        ):
            row = self._pop(heap)
            # Early in a run the question ends within the drain, so that no running sample is looked at.
            if row is None or (seconds := self._expected(row) * prudence * mine) <= drain:
                return row, False
            if longest is None:
                longest = max(self._residual(self._running[t]) * pace for e, pace in faster for t in e.running)
            if seconds <= drain + longest:
                return row, False
            # Popped and not taken: it must stay in the heap for another endpoint.
            heapq.heappush(heap, entry(row))
        return None, True

    def _prefer_seen_prompt(self, endpoint: int, best: int) -> int:
        """Return the question that `endpoint` gets: `best`, the most urgent one, or a tied one with a cheaper prompt.

        `best` is passed over only if its long prompt is in the caches of other endpoints, but not of this one.
        Questions are given by their index in the queue.
        """
        if not self._costs_a_prompt(endpoint, best):
            return best
        choice, passed = best, [best]
        while len(passed) < _MAX_SEARCHED and (row := self._pop(self._long)) is not None:
            passed.append(row)
            if self._urgency(row) < _TIED_FRACTION * self._urgency(best):
                break
            if not self._costs_a_prompt(endpoint, row):
                choice = row
                break
        for row in passed:
            if row != choice:
                heapq.heappush(self._long, self._long_entry(row))
        return choice

    def _costs_a_prompt(self, endpoint: int, row: int) -> bool:
        """Whether `endpoint` would have to read a question's long prompt that other endpoints have in their caches.

        row: index of the question in the queue.
        """
        question = self._questions[row]
        return question.long_prompt and bool(question.seen_by) and endpoint not in question.seen_by

    def _probe(self, endpoint: int) -> Task | None:
        """Hand out a sample of the question with the fewest failed requests, to test whether the endpoint is up.

        None if no sample is left for this endpoint.
        """
        fresh = [i for i, q in enumerate(self._questions) if q.n_in_wave]
        if not fresh and self._n_waiting and self._open_wave():
            fresh = [i for i, q in enumerate(self._questions) if q.n_in_wave]
        # In reverse: of several samples of a question, the one that came back first stays in the mapping.
        again = {
            self._rows[t.benchmark][t.question_id]: t
            for t in reversed(self._returned)
            if t not in self.elsewhere_only or endpoint not in self._failed_by[t]
        }
        if all(self._questions[i].n_returned for i in [*fresh, *again]):
            # The endpoint may fail just these questions; then a question of a later wave shows whether it is up.
            fresh = [i for i, q in enumerate(self._questions) if q.waiting]
        best = min([*fresh, *again], key=lambda i: (self._questions[i].n_returned, self._expected(i)), default=None)
        if best is None:
            return None
        if best in again:
            self._returned.remove(again[best])
            return again[best]
        return self._take(best)

    def _take(self, row: int) -> Task:
        """Hand out the next sample of a question of the wave.

        row: index of the question in the queue.
        """
        question = self._questions[row]
        question.n_in_wave = max(0, question.n_in_wave - 1)  # 0 already if a probe is sent before its wave.
        self._n_unasked -= not question.n_handed
        question.n_handed += 1
        self._n_waiting -= 1
        if question.n_in_wave:
            self._push(row)
        return Task(question.benchmark, question.question_id, question.waiting.pop(0))

    def _open_wave(self) -> bool:
        """Begin the next wave if the present one is empty; return whether a wave has samples now."""
        if any(q.n_in_wave for q in self._questions):
            self._refresh()
            return True
        if not self._begin_wave():
            return False
        self._random = None
        self._refresh()
        return True

    def _refresh(self) -> None:
        """Make the heaps that are ordered by length anew, with the lengths known now.

        The heap in random order stays: lengths do not change it.
        """
        self._finishes = 0
        self._count_running()
        rows = [row for row, question in enumerate(self._questions) if question.n_in_wave]
        self._long = [self._long_entry(row) for row in rows]
        heapq.heapify(self._long)
        # A single endpoint is never the slower one.
        if len(self._endpoints) > 1:
            self._short = [self._short_entry(row) for row in rows]
            heapq.heapify(self._short)

    def _push(self, row: int) -> None:
        """Put a question into the heaps again, by its new rank; `_pop` skips its older entries.

        row: index of the question in the queue.
        """
        heapq.heappush(self._long, self._long_entry(row))
        if len(self._endpoints) > 1:
            heapq.heappush(self._short, self._short_entry(row))
        if self._random is not None:
            heapq.heappush(self._random, self._random_entry(row))

    def _in_random_order(self) -> list[_Entry]:
        """Return the heap of the wave's questions in random order."""
        if self._random is None:
            rows = [row for row, question in enumerate(self._questions) if question.n_in_wave]
            self._random = [self._random_entry(row) for row in rows]
            heapq.heapify(self._random)
        return self._random

    def _long_entry(self, row: int) -> _Entry:
        return -self._urgency(row), self._questions[row].n_handed, row

    def _short_entry(self, row: int) -> _Entry:
        return self._expected(row), self._questions[row].n_handed, row

    def _random_entry(self, row: int) -> _Entry:
        question = self._questions[row]
        text = f"{question.benchmark}:{question.question_id}:{question.n_handed}"
        rank = int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest())
        return float(rank), question.n_handed, row

    def _pop(self, heap: list[_Entry]) -> int | None:
        """Take the first question from `heap` and return its index in the queue; None if the wave is empty."""
        while heap:
            _, handed, row = heapq.heappop(heap)
            question = self._questions[row]
            if question.n_in_wave and question.n_handed == handed:
                return row
        return None

    # ---- expected lengths

    def _expected(self, row: int) -> float:
        """Return the expected length of the question's next sample, in tokens.

        row: index of the question in the queue. The expected length is the mean over the question's finished samples
        and one or two imagined samples of the prior length. A running sample that is already longer than expected
        counts, too, with a multiple of its present length: short samples finish first, and they alone would make a long
        question look short.
        """
        question = self._questions[row]
        # A prior length of this very question counts as two samples, the mean of its benchmark as one.
        if question.prior is None:
            prior_tokens, weight = self._benchmark_mean(question.benchmark), 1.0
        else:
            prior_tokens, weight = 2.0 * question.prior, 2.0
        tokens = prior_tokens + question.known_tokens + question.censored_tokens
        return tokens / (weight + question.n_known + question.n_censored)

    def _count_running(self) -> None:
        """Store, for each question, its running samples that are already longer than expected, for `_expected`."""
        for question in self._questions:
            question.censored_tokens, question.n_censored = 0.0, 0
        # Collected before any is counted, since each counted sample changes the expected length of its question.
        late = [
            (r.question, done)
            for r in self._running.values()
            if (done := self._progress(r)) and done > self._expected(r.question)
        ]
        for row, done in late:
            self._questions[row].censored_tokens += _CENSORED * done
            self._questions[row].n_censored += 1

    def _urgency(self, row: int) -> float:
        """Return the urgency by which a wave is ordered: the expected length, raised while few samples were handed out.

        row: index of the question in the queue. Because of the raise every question is tried early, and none turns out
        to be long only at the end of the run (bench/schedule.py measures this).
        """
        return self._expected(row) * (1 + _CURIOSITY / (1 + self._questions[row].n_handed))

    def _benchmark_mean(self, benchmark: str) -> float:
        """Return the mean tokens of the benchmark's finished samples, or a stand-in if fewer than 4 have finished.

        The stand-in is the mean over all benchmarks or, with fewer than 4 finished samples in all, a guess.
        """
        tokens, n = self._known[benchmark]
        if n < 4:
            tokens, n = self._known_of_all
        return tokens / n if n >= 4 else self._guesses[benchmark]

    def _progress(self, running: _Running) -> float:
        """Estimated tokens of a running sample so far, from its endpoint's speed; 0 while that is unknown."""
        pace = self._endpoints[running.endpoint].seconds_per_token
        return (self._clock() - running.started) / pace if pace else 0.0

    def _residual(self, running: _Running) -> float:
        """Tokens that a running sample is still expected to bring; more than 0 even beyond its expected length."""
        expected, done = self._expected(running.question), self._progress(running)
        return max(expected - done, (_CENSORED - 1) * done)

    # ---- endpoints

    def _is_slow(self, endpoint: int) -> bool:
        """Whether the endpoint needs more than `SLOWER` times the seconds per token of the fastest available one."""
        if len(self._endpoints) == 1 or (mine := self._endpoints[endpoint].seconds_per_token) is None:
            return False
        paces = [e.seconds_per_token for e in self._endpoints if e.available]
        measured = [p for p in paces if p is not None]
        return bool(measured) and mine > SLOWER * min(measured)

    def _faster_at_work(self, mine: float) -> list[tuple[_Speed, float]]:
        """Return (endpoint, its seconds per token) of endpoints with running samples, faster by `SLOWER`.

        mine: seconds per token of the slow endpoint.
        """
        return [
            (e, pace)
            for e in self._endpoints
            if e.available and e.running and (pace := e.seconds_per_token) is not None and mine > SLOWER * pace
        ]

    def _drain(self, faster: list[tuple[_Speed, float]]) -> float:
        """Return the seconds in which these endpoints work off all waiting samples; infinite without endpoints."""
        if not faster:
            return math.inf
        waiting = sum(len(q.waiting) * self._expected(i) for i, q in enumerate(self._questions) if q.waiting)
        return waiting / sum(len(e.running) / pace for e, pace in faster)

    def _forget(self, task: Task) -> None:
        """Forget the failures of `task`."""
        if self._failed_by or self._n_returned:
            self._failed_by.pop(task, None)
            self.elsewhere_only.discard(task)
            self._n_returned.pop(task, None)

    def _end(self, task: Task) -> _Running:
        running = self._running.pop(task)
        self._endpoints[running.endpoint].running.discard(task)
        return running
