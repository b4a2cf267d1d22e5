"""When to ask again, how long to wait, when to stop: policies, apart from what sends the requests.

Different signals: "try again" (5xx, cut streams, deadlines) is retried with full jitter within a budget (`Attempts`,
`RetryBudget`); "never" is final at once; "slow down" (429) concerns an endpoint, not a sample, and is met where
requests are shared out.
Time and randomness are parameters; nothing here sleeps.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tenacity import RetryCallState, Retrying, stop_after_attempt
from tenacity.stop import stop_base
from tenacity.wait import wait_base

from harness.client.protocol.reply import FailureKind, RequestFailed

_SUBJECT = Retrying()
"""tenacity wants a retry object in each call state; the policies never look at it."""


class FullJitter(wait_base):
    """Uniform in [0, min(cap, base × 2^(attempt − 1))] seconds, so that workers that failed together part."""

    def __init__(self, base: float = 1.0, cap: float = 60.0, rng: random.Random | None = None) -> None:
        self.base = base
        self.cap = cap
        self.rng = rng or random.Random()  # noqa: S311 - jitter, not a secret

    def __call__(self, retry_state: RetryCallState) -> float:
        return self.rng.uniform(0.0, min(self.cap, self.base * 2.0 ** min(retry_state.attempt_number - 1, 30)))


class AsServerAsks(wait_base):
    """At least as long as the server's Retry-After; `otherwise` decides beyond it."""

    def __init__(self, otherwise: wait_base) -> None:
        self.otherwise = otherwise

    def __call__(self, retry_state: RetryCallState) -> float:
        failure = _failure(retry_state)
        return (failure.retry_after or 0.0) + self.otherwise(retry_state)


class SameErrorAgain(stop_base):
    """The same failure in the same words `times` times in a row on one payload: it will not go away.

    429s and failures to connect do not count: they say nothing about the payload.
    """

    def __init__(self, times: int = 4) -> None:
        self.times = times

    def __call__(self, retry_state: RetryCallState) -> bool:
        history: tuple[RequestFailed, ...] = retry_state.args
        last = history[-self.times :]
        if len(last) < self.times or last[-1].kind in ("rate_limited", "connect"):
            return False
        return len({(failure.kind, failure.status, failure.message) for failure in last}) == 1


@dataclass(frozen=True)
class RetryPolicy:
    """How one sample's failures are met. `stop` and `wait` are tenacity's; `stop` sees all attempts but 429s."""

    wait: wait_base = field(default_factory=lambda: AsServerAsks(FullJitter()))
    stop: stop_base = field(default_factory=lambda: stop_after_attempt(6) | SameErrorAgain())
    rate_limited_attempts: int = 50


class RetryBudget:
    """Retries of a whole run: at most `share` of its requests, plus `floor`.

    Failures to connect are not charged: the server did no work, and its endpoint is set aside by other means.
    """

    def __init__(self, share: float = 0.2, floor: int = 50) -> None:
        self.share = share
        self.floor = floor
        self.requests = 0
        self.retries = 0

    def asked(self) -> None:
        """A sample was asked for the first time."""
        self.requests += 1

    def take(self, kind: FailureKind) -> bool:
        """One more retry is allowed, and is counted."""
        if kind == "connect":
            return True
        if self.retries >= self.floor + self.share * self.requests:
            return False
        self.retries += 1
        return True


class Attempts:
    """The attempts at one sample. `count` is the number of requests made."""

    def __init__(self, policy: RetryPolicy, budget: RetryBudget) -> None:
        self.policy = policy
        self.budget = budget
        self.count = 0
        self.failures: list[RequestFailed] = []
        self.final = ""
        """Why no further attempt is made; empty while there may be one."""
        self._rate_limited = 0

    def begin(self) -> int:
        """A request is about to be sent; returns its number, from 1."""
        self.count += 1
        if self.count == 1:
            self.budget.asked()
        return self.count

    def failed(self, failure: RequestFailed) -> float | None:
        """Seconds to wait before the next attempt; None when this failure is final (see `final`)."""
        self.failures.append(failure)
        if not failure.retryable:
            self.final = "asking again cannot help"
            return None
        if failure.kind == "rate_limited":
            self._rate_limited += 1
            exhausted = self._rate_limited >= self.policy.rate_limited_attempts
            number = self._rate_limited
        else:
            number = len(self.failures) - self._rate_limited
            exhausted = self.policy.stop(self._state(failure, number))
        if exhausted:
            self.final = f"given up after {self.count} attempts"
            return None
        if not self.budget.take(failure.kind):
            self.final = f"the run's budget of retries ({self.budget.share:.0%} of its requests) is spent"
            return None
        return self.policy.wait(self._state(failure, number))

    def _state(self, failure: RequestFailed, number: int) -> RetryCallState:
        state = RetryCallState(_SUBJECT, None, tuple(self.failures), {})
        state.attempt_number = number
        state.set_exception((type(failure), failure, None))
        return state


def _failure(state: RetryCallState) -> RequestFailed:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, RequestFailed)
    return error
