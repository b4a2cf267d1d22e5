"""What a run is doing, as an immutable value. Rendering belongs to the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from harness.generation.forecast import TimeLeft

EndpointState = Literal["open", "paused", "set aside", "left"]
"""paused: it asked to wait (429, Retry-After). set aside: it failed several times in a row; it is probed.
left: it was taken off the list while the run went on."""


class Continued(NamedTuple):
    """Replies that went on from what had been written before, and how many tokens that was."""

    samples: int = 0
    tokens: int = 0


NOTHING_CONTINUED = Continued()


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkProgress:
    """done: samples on disk, former sessions included; total: samples expected.

    in_flight: being answered. retrying: failed, and to be asked again. given_up: not asked again in this session.
    """

    name: str
    done: int
    total: int
    in_flight: int = 0
    retrying: int = 0
    given_up: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointProgress:
    """limit: requests in flight that it is given at present. done, failed: requests of this session.

    why: its latest failure, in the server's words, where it is not open. wait_s: seconds until it is sent something.
    """

    base_url: str
    state: EndpointState
    in_flight: int
    limit: int
    done: int
    failed: int
    why: str = ""
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureProgress:
    """Failed requests of one kind. latest: the last one's cause; ago_s: seconds since then."""

    kind: str
    count: int
    latest: str
    ago_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OldestInFlight:
    """The sample that has been in flight longest. seconds: for how long; tokens: so far."""

    benchmark: str
    question_id: str
    sample_index: int
    seconds: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A snapshot. elapsed_s: seconds. finished: replies of this session; truncated: those cut at their budget.

    continued: replies that went on from a beginning that had been written before.
    tokens: completion tokens of the finished ones, as stated; arrived: tokens received in this session by now, those of
    requests in flight and of failed ones included. tokens_per_s: of all that arrived, over the whole session;
    tokens_per_s_now: over the last seconds; None before anything has. eta: until the session ends; None while unknown.
    waiting: samples still to be asked. given_up: samples that stay owed in this session. failures: failed requests;
    retries: requests made again; failed: by kind, the latest first. oldest: None while nothing is in flight.
    concurrency: requests that may be in flight at present. paused: by the user.
    stopping: nothing more is asked; why: the reason; grace_s: seconds that requests in flight are given from now on,
    None for as long as they take.
    """

    elapsed_s: float
    done: int
    total: int
    in_flight: int
    waiting: int
    given_up: int
    failures: int
    retries: int
    finished: int
    truncated: int
    tokens: int
    arrived: int
    tokens_per_s: float | None
    tokens_per_s_now: float | None
    benchmarks: tuple[BenchmarkProgress, ...]
    endpoints: tuple[EndpointProgress, ...]
    failed: tuple[FailureProgress, ...] = ()
    oldest: OldestInFlight | None = None
    eta: TimeLeft | None = None
    concurrency: int = 0
    paused: bool = False
    stopping: bool = False
    continued: Continued = NOTHING_CONTINUED
    why: str = ""
    grace_s: float | None = None
