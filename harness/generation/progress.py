"""What a run is doing, as an immutable value. Rendering belongs to the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EndpointState = Literal["open", "paused", "set aside", "left"]
"""paused: it asked to wait (429, Retry-After). set aside: it failed several times in a row; it is probed.
left: it was taken off the list while the run went on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkProgress:
    """done: samples on disk, former sessions included; total: samples expected."""

    name: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointProgress:
    """limit: requests in flight that it is given at present. done, failed: requests of this session."""

    base_url: str
    state: EndpointState
    in_flight: int
    limit: int
    done: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A snapshot. elapsed_s, eta_s: seconds; tokens: completion tokens of this session's finished samples.

    tokens_per_s counts what running samples are estimated to have by now; None before the first has finished.
    given_up: samples that stay owed in this session. failures: failed requests; retries: requests made again.
    concurrency: requests that may be in flight at present. paused: by the user. stopping: nothing more is asked.
    """

    elapsed_s: float
    done: int
    total: int
    in_flight: int
    waiting: int
    given_up: int
    failures: int
    retries: int
    truncated: int
    tokens: int
    tokens_per_s: float | None
    eta_s: float | None
    benchmarks: tuple[BenchmarkProgress, ...]
    endpoints: tuple[EndpointProgress, ...]
    concurrency: int = 0
    paused: bool = False
    stopping: bool = False
