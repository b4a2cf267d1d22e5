"""What the dispatcher's parts share: the plan of the session, an endpoint, a sample in work, a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Arriving
from harness.client.protocol.failures import RequestFailed
from harness.generation.dispatch.history import History
from harness.generation.dispatch.too_many_requests import Pace
from harness.generation.run_progress import EndpointState
from harness.generation.spending import Spent
from harness.runs.record import Owed, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """The state from which one session starts.

    owed: the samples to ask for. done, total: samples by benchmark, on disk before the session and expected in the end.
    prompt_bytes: (benchmark, question_id) of each question with owed samples → bytes of its prompt in a request; empty
    if no prices are given. server_model: the model's name in the first reply of the run, in any session; None before
    that.
    """

    owed: Sequence[Owed]
    done: Mapping[str, int]
    total: Mapping[str, int]
    prompt_bytes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    server_model: str | None = None


class Lane(msgspec.Struct, kw_only=True, eq=False):
    """One endpoint: how fast it is, which requests it may get, and what they came to.

    Times are monotonic seconds. history: what it has answered. share: the requests in flight that it gets when all
    endpoints work. pace: controls how many it gets at present. has_left: whether it was taken off the list. opens_at:
    nothing is sent before; retry_after_ends: the end of the pause that the server itself stated. try_owed: whether it
    stated one while the session was still patient, and has not been tried since. set_aside: it failed several times in
    a row, and gets one request at a time; n_waits: how often, since its last answer. down_at: when it was last set
    aside; a failure of a request that was sent before shows nothing new. refuses: whether it has refused all requests
    (a wrong key, say). n_done, n_failed: its requests. seconds, tokens: sums over its finished samples, in which recent
    ones count most.
    """

    endpoint: Endpoint
    pace: Pace
    history: History = msgspec.field(default_factory=History)
    share: int = 1
    has_left: bool = False
    failures_in_row: int = 0
    n_waits: int = 0
    opens_at: float = float("-inf")
    retry_after_ends: float = float("-inf")
    try_owed: bool = False
    set_aside: bool = False
    down_at: float = float("-inf")
    refuses: bool = False
    n_done: int = 0
    n_failed: int = 0
    last_failure: RequestFailed | None = None
    seconds: float = 0.0
    tokens: float = 0.0

    @property
    def token_s(self) -> float:
        """Seconds per token; 0 while unknown."""
        return self.seconds / self.tokens if self.tokens else 0.0

    def finished(self, seconds: float, tokens: float) -> None:
        """Note how long a sample of so many tokens took here."""
        self.seconds = 0.98 * self.seconds + seconds
        self.tokens = 0.98 * self.tokens + tokens

    @property
    def in_flight(self) -> int:
        return self.pace.in_flight

    @property
    def limit(self) -> int:
        """Requests in flight that the endpoint gets at present."""
        if self.has_left:
            return 0
        return 1 if self.set_aside else self.pace.limit

    def has_room(self, now: float) -> bool:
        """Whether the endpoint may get one more request now."""
        return now >= self.opens_at and self.in_flight < self.limit

    def pause(self, now: float) -> float:
        """Seconds until a request may be sent; 0 or less: now."""
        rest_ends = self.pace.rest_ends
        if rest_ends is None or self.limit or self.has_left:  # a slot is free, or the endpoint gets no more requests
            return self.opens_at - now
        return max(self.opens_at, rest_ends) - now

    def state(self, now: float) -> EndpointState:
        if self.has_left:
            return "left"
        if self.set_aside:
            return "set aside"
        return "paused" if self.pause(now) > 0 else "open"


class Work(msgspec.Struct, eq=False):
    """A sample that is asked for, from its first request until it is stored or given up.

    requests: how many were sent. failures: how many cost an attempt (`retry`). refusals: by 429. returned: how often
    the sample came back. failed_at: it goes to another endpoint than this one, if such a one is up. billed: for the
    steps of a sample with a tool, but the last. prompt_bytes: of its next step.
    """

    task: Task
    requests: int = 0
    failures: int = 0
    refusals: int = 0
    returned: int = 0
    failed_at: Lane | None = None
    billed: Spent = Spent()
    prompt_bytes: int = 0


def no_request() -> None:
    """What `Flight.cancel` is once it was called, and after the end of the request."""


class Flight(msgspec.Struct, eq=False):
    """One request, from the moment at which it may be sent until it has ended.

    attempt: number of this request for the sample in this session, from 1. refusals: of its slot, less those that were
    forgiven. number: of this request among those to its endpoint. arriving: tells how much has come. continues: whether
    it continues the written part of a reply; set by the sender. events: token events that had come at the last look;
    tokens: the number that these are counted as. cancel: ends the request; whoever sends the request replaces it.
    """

    work: Work
    lane: Lane
    sent_at: float
    attempt: int
    refusals: int
    number: int
    arriving: Arriving
    continues: bool = False
    events: int = 0
    tokens: float = 0.0
    cancel: Callable[[], object] = no_request

    @property
    def task(self) -> Task:
        return self.work.task

    @property
    def endpoint(self) -> Endpoint:
        return self.lane.endpoint
