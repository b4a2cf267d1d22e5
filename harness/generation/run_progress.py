"""What a session has done and spent: its counts, its costs, and snapshots of its state, which `harness.progress` draws.

Tokens and money are computed from the usage that servers report (or else from upper bounds) and the user's prices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Literal

import msgspec

from harness.core.number_text import Prices, count_noun, describe_usd
from harness.core.records import Sample

# ---- tokens and money


def completion_tokens(sample: Sample) -> int:
    """Length of a sample for planning: as reported, else the number of events, else estimated from characters."""
    stated = sample.usage.completion_tokens
    return stated or sample.timing.events or (len(sample.text or "") + len(sample.reasoning or "")) // 4 + 1


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens billed for a session, as reported in the replies, or the maximum possible number if not reported."""

    prompt_tokens: int = 0
    """Billed prompt tokens."""
    completion_tokens: int = 0
    """Billed completion tokens."""
    n_unstated: int = 0
    """Number of requests whose usage is unknown (for example, because they failed mid-reply). Each one is counted at
    its maximum possible number of tokens, or at an estimate if max_tokens is not set.
    """
    cached_tokens: int = 0
    """Number of the prompt tokens that came from a cache."""

    @classmethod
    def of_all(cls, counts: Iterable[Mapping[str, int]]) -> Spent:
        """The sum of what several sessions logged, under the names of these fields or those of older versions."""
        total: Counter[str] = Counter()
        for of in counts:
            total.update(of)
        unstated = total["n_unstated"] + total["n_bounded"] + total["n_estimated"]
        return cls(total["prompt_tokens"], total["completion_tokens"], unstated, total["cached_tokens"])

    def add(self, *more: Spent) -> Spent:
        """Return the sum of both."""
        return Spent(*map(sum, zip(*map(astuple, (self, *more)), strict=True)))

    def usd(self, prices: Prices) -> float:
        """The cost in USD."""
        return prices.usd(self.prompt_tokens, self.completion_tokens, self.cached_tokens)

    @property
    def hedge(self) -> str:
        """The words before the cost: "at most " unless all replies state their usage."""
        return "at most " if self.n_unstated else ""

    def sentence(self, prices: Prices) -> str:
        """Return a sentence on the cost in USD, on the tokens, and on how exact the count is."""
        cached = f" ({self.cached_tokens:,} cached)" if prices.cached is not None else ""
        tokens = f"{self.prompt_tokens:,} tokens in{cached}, {self.completion_tokens:,} out"
        text = f"{self.hedge}{describe_usd(self.usd(prices))} for {self.hedge}{tokens}"
        if self.n_unstated:
            text += f"; {count_noun(self.n_unstated, 'request')} without reported usage counted at the maximum cost"
        return text


@dataclass(slots=True)
class Account:
    """How much of a run's budget its sessions have used.

    A session without a budget records nothing. spent: total for all requests. n_begun, n_finished: numbers of samples;
    with `spent`, they predict the cost of the next samples. longest: completion tokens of the longest reply.
    """

    spent: Spent = field(default_factory=Spent)
    n_begun: int = 0
    n_finished: int = 0
    longest: int = 0


# ---- counts, and the state at one moment


EndpointState = Literal["open", "paused", "set aside", "left"]
"""The state of an endpoint.

open: it gets requests. paused: it asked to wait (429, Retry-After). set aside: it failed several times in a row and is
probed. left: it was removed from the list of endpoints or excluded during the run.
"""


class Tally(msgspec.Struct, kw_only=True):
    """The counts of a session, to which the dispatcher adds."""

    finished: int = 0
    """Number of replies finished in this session."""
    truncated: int = 0
    """Number of finished replies that max_tokens truncated."""
    tokens: int = 0
    """Completion tokens of the finished replies, as reported by the server."""
    failures: int = 0
    """Number of failed requests."""
    retries: int = 0
    """Number of failed requests that were retried."""
    spent: Spent = Spent()
    """Tokens billed for finished samples."""
    overhead: Spent = Spent()
    """Tokens billed for requests that did not produce a sample."""
    notes: dict[str, int] = msgspec.field(default_factory=dict)
    """Number of occurrences of each kind of irregularity in the replies."""

    def note(self, note: str) -> None:
        """Count a reply that has this note."""
        self.notes[note] = self.notes.get(note, 0) + 1

    def add(self, more: Tally) -> Tally:
        """Return the counts of two sessions."""
        notes = {note: self.notes.get(note, 0) + more.notes.get(note, 0) for note in {**self.notes, **more.notes}}
        total = Tally(spent=self.spent.add(more.spent), overhead=self.overhead.add(more.overhead), notes=notes)
        for name in Tally.__struct_fields__:
            if isinstance(n := getattr(self, name), int):
                setattr(total, name, n + getattr(more, name))
        return total


class BenchmarkProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of one benchmark."""

    name: str
    """Name of the benchmark."""
    done: int
    """Number of samples on disk, including those from earlier sessions."""
    total: int
    """Number of planned samples."""
    in_flight: int = 0
    """Number of samples in flight."""
    retrying: int = 0
    """Number of failed samples that will be retried."""
    given_up: int = 0
    """Number of failed samples that will not be retried in this session."""


class EndpointProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one endpoint."""

    base_url: str
    """Base URL of the endpoint."""
    state: EndpointState
    """"open" (receives requests), "paused" (asked the client to wait), "set aside" (failed repeatedly and receives only
    test requests) or "left" (was removed).
    """
    in_flight: int
    """Requests in flight."""
    limit: int
    """Current maximum number of requests in flight."""
    done: int
    """Number of successful requests in this session."""
    failed: int
    """Number of failed requests in this session."""
    why: str = ""
    """Most recent failure, as worded by the server; empty if the state is "open"."""
    wait_s: float = 0.0
    """Seconds until the next request is sent to this endpoint."""


class FailureProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Failed requests of one kind."""

    kind: str
    """Kind of failure."""
    count: int
    """Number of requests."""
    latest: str
    """Cause of the most recent failure."""
    ago_s: float
    """Seconds since the most recent failure."""


class OldestInFlight(msgspec.Struct, frozen=True, kw_only=True):
    """The sample that has been in flight longest."""

    benchmark: str
    """Name of the benchmark."""
    question_id: str
    """ID of the question."""
    sample_index: int
    """Zero-based index of the sample among its question's samples."""
    seconds: float
    """Seconds in flight so far."""
    tokens: int
    """Number of tokens received so far."""


class ToolProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's calls."""

    running: int
    """Number of calls in progress."""
    waiting: int
    """Number of calls waiting to start."""
    waits_for: str
    """Resource that the calls are waiting for: "processors" or "memory"."""
    interpreters: int
    """Number of open interpreters (one per sample that has made a call). Interpreters are suspended between calls."""
    memory: int
    """Current memory limit for the interpreters, in bytes."""
    most_memory: int
    """Maximum memory for the interpreters, in bytes."""


class Progress(Tally, kw_only=True):
    """An immutable snapshot of a session's state and counts.

    Wide: it has everything that a display and `harness status` show about a session.
    """

    elapsed_s: float
    """Seconds since the session started."""
    done: int
    """Number of samples on disk, including those from earlier sessions."""
    total: int
    """Number of planned samples, including those from earlier sessions."""
    in_flight: int
    """Number of samples in flight."""
    waiting: int
    """Number of samples not yet requested."""
    given_up: int
    """Number of failed samples that will not be retried in this session."""
    arrived: int
    """Number of tokens received in this session, including tokens from failed requests and requests still in flight."""
    tokens_per_s: float | None
    """`arrived` divided by the session's duration in seconds; None before the first token."""
    tokens_per_s_now: float | None
    """Recent tokens per second; None before the first token."""
    benchmarks: tuple[BenchmarkProgress, ...]
    """Progress by benchmark."""
    endpoints: tuple[EndpointProgress, ...]
    """State of each endpoint."""
    failed: tuple[FailureProgress, ...] = ()
    """Failed requests by kind, most recent first."""
    oldest: OldestInFlight | None = None
    """The sample that has been in flight longest; None if there is none."""
    eta: float | None = None
    """Estimated seconds until the session ends at the current rate; None if unknown."""
    concurrency: int = 0
    """Maximum number of requests in flight."""
    stopping: bool = False
    """Whether the session is stopping and no longer sends requests."""
    why: str = ""
    """Why the session is stopping; otherwise empty."""
    grace_s: float | None = None
    """Seconds left for requests in flight to finish; None if there is no limit."""
    patience_s: float | None = None
    """Seconds until the session gives up because no endpoint responds; None if at least one responds."""
    tool: ToolProgress | None = None
    """Tool calls; None if the run has no tool."""
