"""How the failure of one request is met: whether its sample is asked again, when, and at whose expense.

| fault | failures | the sample is asked again | it costs |
| --- | --- | --- | --- |
| machine | no descriptor left for a socket | after a pause, with fewer requests at once | nothing |
| endpoint | no connection, 502, 503, 504, a probe's deadline | at once, elsewhere first | nothing |
| pace | 429 | at once, by whichever endpoint's pace allows it | one retry of the run's budget |
| chance | other 5xx, cut or malformed streams, deadlines | after a backoff, elsewhere first | an attempt and a retry |
| payload | prompt too long, rejected, runaway | never: the sample is given up | – |
| run | 401, 403, 404 | never: the run stops | – |

A sample whose attempts are used up is sent once more to each endpoint that has not failed it, and is given up when none
is left: an endpoint may fail questions that another one serves.

What an endpoint's faults and pace mean for the endpoint is decided in `lanes` and `too_many_requests`. A Retry-After
holds the endpoint back and not the sample, which another endpoint may take meanwhile.
Time and randomness are parameters; nothing here sleeps.

Whether a sample that was half written is gone on with, or asked anew: what failed continuations prove. No I/O.

A continuation that brings no token may have met a server that is down, or one that takes whole requests and no
continuations (a gateway without token ids). Only whole requests tell the two apart, so a failed continuation is held
against nobody until one was answered or failed:

| what ended | the sample | the endpoint |
| --- | --- | --- |
| a continuation, without a token | has one failure more; from `TRIES` on it is asked whole | is in doubt |
| a continuation, answered | has no failure | is trusted |
| a whole request, answered | is done | if in doubt: one doubt more, at `DOUBTS` no continuation in this session |
| a whole request, failed by the server or refused | all may go on again | is no longer in doubt: it was the server |
| a whole request, failed by chance | – (its question may be what fails) | is no longer in doubt |

An endpoint that is in doubt and set aside, or that refused a continuation by 429, gets a whole request next: a limiter
refuses that one, too, and a gateway that takes no continuations is found out without many refusals. What had been
written is kept until another reply brings tokens, so that a server that was down costs nothing.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, NamedTuple

from harness.client.protocol.reply import RequestFailed
from harness.generation.plan import Task
from harness.generation.settings import Patience

Fault = Literal["machine", "endpoint", "pace", "chance", "payload", "run"]

_MAX_DOUBLINGS = 30


def fault_of(failure: RequestFailed, *, probing: bool) -> Fault:
    """The fault that explains a failure.

    probing: the endpoint was set aside, so its silence says something about itself.
    """
    if failure.kind == "out_of_files":
        return "machine"
    if failure.stops_run:
        return "run"
    if not failure.retryable:
        return "payload"
    if failure.kind == "rate_limited":
        return "pace"
    if failure.kind == "connect" or failure.status in (502, 503, 504) or (probing and failure.kind == "timeout"):
        return "endpoint"
    return "chance"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How failures of the fault "chance" are met.

    attempts: requests for a sample after which it is given up. alike: failures in a row, in the same words, after
    which it is given up: they will not go away. first_wait, longest_wait: seconds of the backoff.
    share, floor, floor_per_slot: a run's retries are at most `share` of its requests, plus `floor`, plus
    `floor_per_slot` for each request that may be in flight: a restart of the server costs all of those one retry, and
    that alone must not use up the budget.
    """

    attempts: int = 5
    alike: int = 4
    first_wait: float = 1.0
    longest_wait: float = 60.0
    share: float = 0.2
    floor: int = 50
    floor_per_slot: int = 4

    @classmethod
    def of(cls, patience: Patience) -> RetryPolicy:
        """The policy with the user's patience, and defaults for the rest."""
        return cls(attempts=patience.attempts, first_wait=patience.first_wait, longest_wait=patience.longest_wait)

    def ceiling(self, n_failures: int) -> float:
        """Longest backoff, in seconds, after `n_failures` (at least 1) of a sample."""
        return min(self.longest_wait, self.first_wait * 2.0 ** min(n_failures - 1, _MAX_DOUBLINGS))


class RetryBudget:
    """Retries of a whole run, as the policy allows them."""

    def __init__(self, policy: RetryPolicy, concurrency: int) -> None:
        self._policy = policy
        self._floor = 0
        self.requests = 0
        self.retries = 0
        self.allow_for(concurrency)

    def allow_for(self, concurrency: int) -> None:
        """`concurrency` requests may be in flight from now on; the budget never shrinks."""
        self._floor = max(self._floor, self._policy.floor + self._policy.floor_per_slot * concurrency)

    def count_request(self) -> None:
        """A sample was asked for the first time."""
        self.requests += 1

    def take(self) -> bool:
        """Whether one more retry is allowed; if so, it is counted."""
        if self.retries >= self._floor + self._policy.share * self.requests:
            return False
        self.retries += 1
        return True


class RetryDecision(NamedTuple):
    """The decision on a failed sample.

    again_after: seconds until the sample is asked again; None: no endpoint that failed it is asked again, for the
    reason `why`. used_up: its attempts are used up; an endpoint that has not failed it may still be asked.
    """

    again_after: float | None
    why: str = ""
    used_up: bool = False


@dataclass(slots=True)
class _Attempts:
    """requests: made for the sample.

    failures: of the fault "chance". last, alike: the last failure's text, and how often in a row.
    """

    requests: int = 0
    failures: int = 0
    last: tuple[str, int | None, str] | None = None
    alike: int = 0


class Retries:
    """All samples that were asked and are not finished: their attempts, and those that wait to be asked again.

    jitter: a random number between two bounds. Memory: one entry per such sample.
    """

    def __init__(self, policy: RetryPolicy, concurrency: int, jitter: Callable[[float, float], float]) -> None:
        self.policy = policy
        self._jitter = jitter
        self._attempts: dict[Task, _Attempts] = {}
        self._later: list[tuple[float, Task]] = []
        self.budget = RetryBudget(policy, concurrency)

    def begin(self, task: Task) -> int:
        """A request for `task` is about to be sent; returns its number, from 1."""
        attempts = self._attempts.setdefault(task, _Attempts())
        attempts.requests += 1
        if attempts.requests == 1:
            self.budget.count_request()
        return attempts.requests

    def failed(self, task: Task, failure: RequestFailed, fault: Fault = "chance") -> RetryDecision:
        """A request for `task` failed, by the fault "endpoint" or "chance"."""
        attempts = self._attempts[task]
        if fault == "chance":
            attempts.failures += 1
            words = (failure.kind, failure.status, failure.message)
            attempts.alike = attempts.alike + 1 if words == attempts.last else 1
            attempts.last = words
        if attempts.failures >= self.policy.attempts or attempts.alike >= self.policy.alike:
            return RetryDecision(None, f"given up after {attempts.requests} attempts", used_up=True)
        if fault == "endpoint":
            return RetryDecision(0.0)
        if not self.budget.take():
            return RetryDecision(
                None, f"the run's budget of retries ({self.policy.share:.0%} of its requests) is spent"
            )
        return RetryDecision(self._jitter(0.0, self.policy.ceiling(attempts.failures)))

    def forget(self, task: Task) -> None:
        """`task` has finished or is given up."""
        self._attempts.pop(task, None)

    # ---- those that wait

    def postpone(self, task: Task, until: float) -> None:
        """Ask for `task` again at this monotonic second."""
        heapq.heappush(self._later, (until, task))

    def due(self, now: float) -> list[Task]:
        """Samples whose time has come; they no longer wait."""
        tasks = []
        while self._later and self._later[0][0] <= now:
            tasks.append(heapq.heappop(self._later)[1])
        return tasks

    @property
    def next_due(self) -> float | None:
        """Monotonic second at which the next one is due; None if none waits."""
        return self._later[0][0] if self._later else None

    @property
    def postponed(self) -> list[Task]:
        """Samples that wait."""
        return [task for _, task in self._later]

    @property
    def n_postponed(self) -> int:
        return len(self._later)

    def drop(self, tasks: Collection[Task]) -> None:
        """These samples wait no longer."""
        self._later = [entry for entry in self._later if entry[1] not in tasks]
        heapq.heapify(self._later)


# ---- continuations


TRIES = 2
"""Failed continuations in a row at one endpoint after which it is asked for the whole sample."""

DOUBTS = 3
"""Whole requests answered after failed continuations, without a successful continuation in between, after which an
endpoint gets no more continuations. A restart of the server explains one.
"""


class Continuations:
    """The state of continuations; see the module. lane_number: an endpoint's number, as in `Lanes`."""

    def __init__(self) -> None:
        self._failures: defaultdict[int, Counter[Task]] = defaultdict(Counter)  # By lane number.
        self._in_doubt: set[int] = set()
        self._refused: set[int] = set()  # Lanes in doubt that answered 429.
        self._doubts: dict[int, int] = {}
        self._off: set[int] = set()

    def allowed(self, task: Task, lane_number: int, *, set_aside: bool) -> bool:
        """Whether the next request for `task` at this endpoint may continue the written part."""
        probe = lane_number in self._refused or (set_aside and lane_number in self._in_doubt)
        return lane_number not in self._off and not probe and self._failures[lane_number][task] < TRIES

    def failed(self, task: Task, lane_number: int, *, refused: bool = False) -> int:
        """A continuation brought no token; returns how many of this sample failed there. refused: with status 429."""
        self._failures[lane_number][task] += 1
        self._in_doubt.add(lane_number)
        if refused:
            self._refused.add(lane_number)
        return self._failures[lane_number][task]

    def answered(self, task: Task, lane_number: int) -> None:
        """A continuation became a sample."""
        self.forget(task)
        self._trust(lane_number)
        self._doubts.pop(lane_number, None)

    def whole_answered(self, task: Task, lane_number: int) -> bool:
        """A whole request became a sample; returns whether the endpoint gets no more continuations."""
        self.forget(task)
        if lane_number not in self._in_doubt:
            return False
        self._trust(lane_number)
        self._doubts[lane_number] = self._doubts.get(lane_number, 0) + 1
        if self._doubts[lane_number] < DOUBTS or lane_number in self._off:
            return False
        self._off.add(lane_number)
        return True

    def whole_failed(self, lane_number: int, *, by_chance: bool) -> None:
        """A whole request failed: by the server's fault, a refusal (429), or by chance."""
        self._trust(lane_number)
        if not by_chance:
            self._failures[lane_number].clear()

    def forget(self, task: Task) -> None:
        """`task` has finished or is given up."""
        for failures in self._failures.values():
            del failures[task]

    def _trust(self, lane_number: int) -> None:
        self._in_doubt.discard(lane_number)
        self._refused.discard(lane_number)
