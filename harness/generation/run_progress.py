"""What a session has done and spent: its counts, its costs, and its state at a moment, which `harness.progress` draws.

Tokens and money are counted by the usage that servers state (else by bounds) and the user's prices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from harness.core.nouns import Prices, count_noun, usd_in_words
from harness.core.records import Sample

# ---- tokens and money


def completion_tokens(sample: Sample) -> int:
    """Length of a sample for planning: as stated, else the number of events, else estimated from characters."""
    stated = sample.usage.completion_tokens
    return stated or sample.timing.events or (len(sample.text or "") + len(sample.reasoning or "")) // 4 + 1


def tokens_before(sample: Sample) -> int:
    """Completion tokens that were written before the sample's last request."""
    return sample.salvaged_at[-1].tokens if sample.salvaged_at else 0


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens that a session was billed for: as the replies state them, or otherwise the most that they can be."""

    prompt_tokens: int = 0
    """Billed prompt tokens."""
    completion_tokens: int = 0
    """Billed completion tokens."""
    n_unstated: int = 0
    """Requests whose usage is unknown, such as one that failed mid-reply. They count with the most tokens possible, or
    with an estimate if no max_tokens limits the reply.
    """

    @classmethod
    def of_all(cls, counts: Iterable[Mapping[str, int]]) -> Spent:
        """The sum of what several sessions logged, by the names of these fields or those of older versions."""
        total: Counter[str] = Counter()
        for of in counts:
            total.update(of)
        unstated = total["n_unstated"] + total["n_bounded"] + total["n_estimated"]
        return cls(total["prompt_tokens"], total["completion_tokens"], unstated)

    def plus(self, *more: Spent) -> Spent:
        """Return the tokens of all."""
        counts = [(each.prompt_tokens, each.completion_tokens, each.n_unstated) for each in (self, *more)]
        return Spent(*map(sum, zip(*counts, strict=True)))

    @property
    def hedge(self) -> str:
        """What stands before the cost: "at most " unless all replies state their usage."""
        return "at most " if self.n_unstated else ""

    def sentence(self, prices: Prices) -> str:
        """Return a sentence on the cost in USD, on the tokens, and on how exact the count is."""
        usd = prices.usd(self.prompt_tokens, self.completion_tokens)
        return f"{self.hedge}{usd_in_words(usd)} for {self.hedge}{self.in_tokens}"

    @property
    def in_tokens(self) -> str:
        """The tokens in words, and how many requests they are no exact count of."""
        text = f"{self.prompt_tokens:,} tokens in, {self.completion_tokens:,} out"
        if self.n_unstated:
            text += f"; {count_noun(self.n_unstated, 'request')} without stated usage count with the most possible"
        return text


@dataclass(slots=True)
class RunCosts:
    """What the samples of one run have cost in a command, from which the cost of its next samples is expected.

    n_begun, n_finished: samples. longest: completion tokens of the longest reply. spent: on the finished samples.
    """

    n_begun: int = 0
    n_finished: int = 0
    longest: int = 0
    spent: Spent = field(default_factory=Spent)


@dataclass(slots=True)
class Account:
    """What the sessions of one command have used of its budget: the stages of a run, and all candidates of a race.

    A session without a budget books nothing. spent, usd: by all requests; the sessions may have different prices.
    runs: run folder → what its samples have cost.
    """

    spent: Spent = field(default_factory=Spent)
    usd: float = 0.0
    runs: dict[Path, RunCosts] = field(default_factory=dict)

    def of(self, folder: Path) -> RunCosts:
        """The costs of the run in `folder`, to which a session adds."""
        return self.runs.setdefault(folder, RunCosts())

    def add(self, spent: Spent, prices: Prices | None) -> None:
        """Book tokens that a session with these prices was billed for."""
        self.spent = self.spent.plus(spent)
        self.usd += prices.usd(spent.prompt_tokens, spent.completion_tokens) if prices is not None else 0.0

    @property
    def has_begun(self) -> bool:
        """Whether a sample was asked for."""
        return any(run.n_begun for run in self.runs.values())


# ---- counts, and the state at one moment


EndpointState = Literal["open", "paused", "set aside", "left"]
"""The state of an endpoint.

open: it gets requests. paused: it asked to wait (429, Retry-After). set aside: it failed several times in a row and is
probed. left: it was taken off the list of endpoints, or left out, during the run.
"""


class Tally(msgspec.Struct, kw_only=True):
    """The counts of a session, to which the dispatcher adds."""

    finished: int = 0
    """Replies of this session."""
    truncated: int = 0
    """Finished replies that were cut by max_tokens."""
    continued: int = 0
    """Finished replies that continued a part written by an earlier request."""
    kept_tokens: int = 0
    """Tokens of these earlier parts."""
    tokens: int = 0
    """Completion tokens of the finished replies, as the server states them, without earlier parts."""
    failures: int = 0
    """Failed requests."""
    retries: int = 0
    """Failed requests that were sent again."""
    spent: Spent = Spent()
    """Tokens of the finished samples."""
    beside: Spent = Spent()
    """Tokens of fingerprints, and of requests that ended without a sample."""
    notes: dict[str, int] = msgspec.field(default_factory=dict)
    """Oddity of a reply → number of occurrences."""

    def note(self, note: str, n: int = 1) -> None:
        """Count `n` replies that have this note."""
        if n:
            self.notes[note] = self.notes.get(note, 0) + n

    def plus(self, more: Tally) -> Tally:
        """Return the counts of two sessions."""
        notes = {note: self.notes.get(note, 0) + more.notes.get(note, 0) for note in {**self.notes, **more.notes}}
        total = Tally(spent=self.spent.plus(more.spent), beside=self.beside.plus(more.beside), notes=notes)
        for name in Tally.__struct_fields__:
            if isinstance(n := getattr(self, name), int):
                setattr(total, name, n + getattr(more, name))
        return total


class BenchmarkProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of one benchmark."""

    name: str
    """Name of the benchmark."""
    done: int
    """Samples on disk, including earlier sessions."""
    total: int
    """Samples expected."""
    in_flight: int = 0
    """Samples being answered."""
    retrying: int = 0
    """Samples that failed and will be requested again."""
    given_up: int = 0
    """Samples that are not requested again in this session."""


class EndpointProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one endpoint."""

    base_url: str
    """Base URL of the endpoint."""
    state: EndpointState
    """open: it gets requests; paused: it asked to wait; set aside: it failed repeatedly and is probed; left: it was
    removed.
    """
    in_flight: int
    """Requests in flight."""
    limit: int
    """Most requests that it may have in flight at present."""
    done: int
    """Requests of this session that succeeded."""
    failed: int
    """Requests of this session that failed."""
    why: str = ""
    """Latest failure in the server's words; empty if the state is "open"."""
    wait_s: float = 0.0
    """Seconds until the next request is sent to it."""


class FailureProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Failed requests of one kind."""

    kind: str
    """Kind of failure."""
    count: int
    """Number of requests."""
    latest: str
    """Cause of the latest one."""
    ago_s: float
    """Seconds since the latest one."""


class OldestInFlight(msgspec.Struct, frozen=True, kw_only=True):
    """The sample that has been in flight longest."""

    benchmark: str
    """Name of the benchmark."""
    question_id: str
    """Id of the question."""
    sample_index: int
    """Index of the sample among those of its question."""
    seconds: float
    """Seconds in flight so far."""
    tokens: int
    """Tokens received so far."""


class ToolProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of a tool."""

    running: int
    """Calls that are running."""
    waiting: int
    """Calls that are waiting."""
    waits_for: str
    """Resource that they wait for: "processors" or "memory"."""
    interpreters: int
    """Open interpreters: one for each sample that has called, stopped between its calls."""
    memory: int
    """Bytes of memory that the interpreters may take at present."""
    most_memory: int
    """Bytes of memory that the interpreters may take at most."""


class Progress(Tally, kw_only=True):
    """The state of a session at one moment, including its counts; replaced as a whole, never changed.

    Wide: it is all that a display and `harness status` show of a session.
    """

    elapsed_s: float
    """Seconds since the session began."""
    done: int
    """Samples on disk, including earlier sessions."""
    total: int
    """Samples expected, including earlier sessions."""
    in_flight: int
    """Samples being answered."""
    waiting: int
    """Samples still to be requested."""
    given_up: int
    """Samples that are not requested again in this session."""
    arrived: int
    """Tokens received in this session, including requests in flight and failed requests."""
    tokens_per_s: float | None
    """`arrived` divided by the seconds of the session; None before the first token."""
    tokens_per_s_now: float | None
    """Tokens per second over the last seconds; None before the first token."""
    benchmarks: tuple[BenchmarkProgress, ...]
    """Progress by benchmark."""
    endpoints: tuple[EndpointProgress, ...]
    """State of each endpoint."""
    failed: tuple[FailureProgress, ...] = ()
    """Failed requests by kind, latest first."""
    oldest: OldestInFlight | None = None
    """The sample that has been in flight longest; None without one."""
    eta: float | None = None
    """Seconds until the session ends at the present rate; None while unknown."""
    concurrency: int = 0
    """Most requests that may be in flight at present."""
    paused: bool = False
    """Whether the user paused the session."""
    stopping: bool = False
    """Whether no further requests are sent."""
    why: str = ""
    """Reason for stopping; empty otherwise."""
    grace_s: float | None = None
    """Seconds that requests in flight still have; None if they may take as long as they need."""
    patience_s: float | None = None
    """Seconds until the session ends by itself because no endpoint responds; None otherwise."""
    tool: ToolProgress | None = None
    """Calls of a tool; None without one."""
