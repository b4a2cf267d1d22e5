"""The counts of a session, and its state at one moment, which `harness.progress` draws."""

from __future__ import annotations

from typing import Literal

import msgspec

from harness.generation.spending import Spent

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
