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
    """Tokens that a session was billed for: as the replies state them, else the most that they can be.

    n_unstated: requests whose usage is unknown, such as one that failed in the middle of its reply. They count with the
    most tokens possible, or with an estimate if no max_tokens bounds the reply.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    n_unstated: int = 0

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
    """The counts of a session, to which the dispatcher adds.

    finished: replies of this session. Of these, truncated: cut at max_tokens; continued: continued a part that an
    earlier request wrote (kept_tokens: tokens of these parts). tokens: completion tokens of the finished replies, as
    the server states them, without such parts. failures: failed requests; retries: those made again. spent: by the
    finished samples; beside: by fingerprints, and by requests that ended without a sample. notes: oddities of replies →
    how often.
    """

    finished: int = 0
    truncated: int = 0
    continued: int = 0
    kept_tokens: int = 0
    tokens: int = 0
    failures: int = 0
    retries: int = 0
    spent: Spent = Spent()
    beside: Spent = Spent()
    notes: dict[str, int] = msgspec.field(default_factory=dict)

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
    """The samples of one benchmark.

    done: on disk, earlier sessions included. total: expected. in_flight: being answered. retrying: failed, and to be
    asked again. given_up: not asked again in this session.
    """

    name: str
    done: int
    total: int
    in_flight: int = 0
    retrying: int = 0
    given_up: int = 0


class EndpointProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one endpoint.

    limit: requests that it may have in flight at present. done, failed: requests of this session. why: its latest
    failure in the server's words, unless its state is "open". wait_s: seconds until the next request is sent to it.
    """

    base_url: str
    state: EndpointState
    in_flight: int
    limit: int
    done: int
    failed: int
    why: str = ""
    wait_s: float = 0.0


class FailureProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Failed requests of one kind. latest: the cause of the last one; ago_s: seconds since it failed."""

    kind: str
    count: int
    latest: str
    ago_s: float


class OldestInFlight(msgspec.Struct, frozen=True, kw_only=True):
    """The sample that has been in flight longest. seconds: in flight so far; tokens: received so far."""

    benchmark: str
    question_id: str
    sample_index: int
    seconds: float
    tokens: int


class ToolProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of a tool. running, waiting: of them; waits_for: "processors" or "memory". interpreters: one for each
    sample that has called, stopped between its calls. memory: bytes that they may take at present, of `most_memory`.
    """

    running: int
    waiting: int
    waits_for: str
    interpreters: int
    memory: int
    most_memory: int


class Progress(Tally, kw_only=True):
    """The state of a session at one moment, beside its counts; replaced as a whole, never changed.

    Samples. done, total: on disk, and expected, earlier sessions included. in_flight: being answered. waiting: still to
    be asked. given_up: not asked again in this session. oldest: the sample in flight longest; None without one.

    Requests. failed: failures by kind, the latest first. concurrency: how many may be in flight at present.

    Tokens. arrived: all tokens received in this session, also of requests in flight and of failed ones. tokens_per_s:
    `arrived` by the seconds of the session; tokens_per_s_now: over the last seconds; None before the first token.

    Time. elapsed_s: seconds since the session began. eta: seconds until it ends at the present rate; None while
    unknown. paused: by the user. stopping: no further request is sent, for the reason `why`; grace_s: seconds that
    requests in flight still have, None for as long as they take. patience_s: seconds until the session ends by itself,
    while no endpoint answers; else None.

    tool: the calls of a tool; None without one.

    Wide: it is all that a display and `harness status` show of a session.
    """

    elapsed_s: float
    done: int
    total: int
    in_flight: int
    waiting: int
    given_up: int
    arrived: int
    tokens_per_s: float | None
    tokens_per_s_now: float | None
    benchmarks: tuple[BenchmarkProgress, ...]
    endpoints: tuple[EndpointProgress, ...]
    failed: tuple[FailureProgress, ...] = ()
    oldest: OldestInFlight | None = None
    eta: float | None = None
    concurrency: int = 0
    paused: bool = False
    stopping: bool = False
    why: str = ""
    grace_s: float | None = None
    patience_s: float | None = None
    tool: ToolProgress | None = None
