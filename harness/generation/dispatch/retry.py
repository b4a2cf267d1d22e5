"""What happens after a request failed: whether its sample is asked again, when, and at what cost.

| fault | failures | the sample is asked again | it costs |
| --- | --- | --- | --- |
| endpoint | no connection, 502, 503, 504, a probe's deadline | at once, elsewhere first | nothing |
| pace | 429 | at once, by whichever endpoint's pace allows it | nothing |
| chance | other 5xx, cut or malformed streams, deadlines | after a backoff, elsewhere first | an attempt |
| payload | prompt too long, rejected, runaway | never: the sample is given up | – |
| run | 401, 403, 404 | never: the run stops, unless this endpoint never answered and another may | – |

`lanes` and `too_many_requests` decide what a fault means for the endpoint. A Retry-After holds the endpoint back but
not the sample, which another endpoint may take meanwhile. Time and randomness are parameters; nothing here sleeps.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from harness.client.protocol.reply import RequestFailed
from harness.core.nouns import count_noun
from harness.generation.settings import Patience
from harness.runs.record import Task

Fault = Literal["endpoint", "pace", "chance", "payload", "run"]

_MAX_DOUBLINGS = 30


def fault_of(failure: RequestFailed, *, probing: bool) -> Fault:
    """Say whose fault a failed request is (the endpoint's, chance, …), which decides about its retry.

    probing: the request was a probe of an endpoint that was set aside, so a deadline is the endpoint's fault.
    """
    if failure.stops_run:
        return "run"
    if not failure.retryable:
        return "payload"
    if failure.kind == "rate_limited":
        return "pace"
    if failure.kind == "connect" or failure.status in (502, 503, 504) or (probing and failure.kind == "timeout"):
        return "endpoint"
    return "chance"


def longest_backoff(patience: Patience, n_failures: int) -> float:
    """Longest backoff, in seconds, after `n_failures` (at least 1) of a sample."""
    return min(patience.longest_wait, patience.first_wait * 2.0 ** min(n_failures - 1, _MAX_DOUBLINGS))


class RetryDecision(NamedTuple):
    """What to do with a sample after its request failed.

    again_after: seconds until the sample is asked again; None if it is not, for the reason `why`.
    """

    again_after: float | None
    why: str = ""


class _Attempts(msgspec.Struct, eq=False):
    """The history of one sample that is not finished.

    requests: how many were made. failures: how many failed by the fault "chance".
    """

    requests: int = 0
    failures: int = 0


class Retries:
    """Keeps the attempts of all samples that were asked and are not finished, and the samples that wait for a retry.

    jitter: returns a random number between two bounds. Memory: one entry for each unfinished sample.
    """

    def __init__(self, patience: Patience, jitter: Callable[[float, float], float]) -> None:
        self._patience = patience
        self._jitter = jitter
        self._attempts: dict[Task, _Attempts] = {}
        self._later: list[tuple[float, Task]] = []

    def begin(self, task: Task) -> int:
        """Count a request for `task`, which is about to be sent; return its number, from 1."""
        if (attempts := self._attempts.get(task)) is None:
            attempts = self._attempts[task] = _Attempts()
        attempts.requests += 1
        return attempts.requests

    def failed(self, task: Task, fault: Fault = "chance") -> RetryDecision:
        """Decide what to do after a request for `task` failed, by the fault "endpoint" or "chance"."""
        attempts = self._attempts[task]
        if fault == "chance":
            attempts.failures += 1
        if attempts.failures >= self._patience.attempts:
            return RetryDecision(None, f"given up after {count_noun(attempts.requests, 'attempt')}")
        if fault == "endpoint":
            return RetryDecision(0.0)
        return RetryDecision(self._jitter(0.0, longest_backoff(self._patience, attempts.failures)))

    def forget(self, task: Task) -> None:
        """Drop the history of `task`, which has finished or is given up."""
        self._attempts.pop(task, None)

    # ---- those that wait

    def postpone(self, task: Task, until: float) -> None:
        """Let `task` wait until the monotonic second `until`; then `due` returns it."""
        heapq.heappush(self._later, (until, task))

    def due(self, now: float) -> list[Task]:
        """Return the samples whose wait is over at `now`; they no longer wait."""
        tasks: list[Task] = []
        while self._later and self._later[0][0] <= now:
            tasks.append(heapq.heappop(self._later)[1])
        return tasks

    @property
    def next_due(self) -> float | None:
        """Monotonic second at which the next waiting sample is due; None if no sample waits."""
        return self._later[0][0] if self._later else None

    @property
    def postponed(self) -> list[Task]:
        """All samples that wait for a retry."""
        return [task for _, task in self._later]

    @property
    def n_postponed(self) -> int:
        return len(self._later)
