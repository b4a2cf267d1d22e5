"""Half-written replies: keeps the parts that have arrived in `inflight.jsonl`, every `KEEP_S` and on signals.

Each line of the file is a sample in progress, with a checksum; the file is replaced as a whole. The text read for a
sample is the beginning of what the server sent. After a crash or damage, the parts are not used, which costs tokens but
never produces a text that no server sent. Nothing here counts as a sample.

Used on the network's loop; a separate thread writes the file. If the file cannot be written, it is given up for the
session, and this is logged. `continuation` makes the requests that continue the parts.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from harness.client.interface import Arriving
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import SoFar, WrittenTokens
from harness.core.errors import StoreError
from harness.core.files import write_atomically
from harness.core.records import SCHEMA_VERSION, Seam
from harness.generation.dispatch.state import Flight
from harness.runs.layout import RunFolder
from harness.runs.line_file import line, read_appended, refuse_link
from harness.runs.missing import Missing, Task

# ---- the file


class Partial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a sample that was received before an interruption."""

    request: str
    """Digest of the request that started the sample."""
    engine: str = ""
    """Engine that handled the request; empty if unknown."""
    server_model: str | None = None
    """Model name, as reported by the server."""
    text: str | None = None
    """Text, as sent by the server; None if the server sent none."""
    reasoning: str | None = None
    """Reasoning, as sent by the server; None if the server sent none."""
    tokens: int = 0
    """Number of tokens."""
    ids: Sequence[int] = ()
    """Token IDs of this part; empty if the server did not report them."""
    prompt_ids: Sequence[int] = ()
    """Token IDs of the prompt; empty if the server did not report them."""
    seams: tuple[Seam, ...] = ()
    """Points at which the sample was interrupted earlier."""
    failures: float = 0.0
    """Number of requests that failed without adding a single token, as counted by
    `harness.generation.network.partial_replies`.
    """


class _Row(msgspec.Struct, frozen=True):
    """A line of the file."""

    key: Task
    part: Partial
    schema: int = SCHEMA_VERSION


class Recovered(NamedTuple):
    """The half-written samples in the file. damage: why there are none if the file cannot be read, else empty."""

    partials: dict[Task, Partial]
    damage: str = ""


def read_parts(folder: RunFolder) -> Recovered:
    """The stored parts. A missing file means that there are none. Never raises an error: unreadable parts are lost."""
    try:
        return Recovered({line.key: line.part for line in read_appended(folder.inflight, _Row, "", sealed=True)})
    except StoreError as error:
        return Recovered({}, str(error))


def write_parts(folder: RunFolder, partials: Mapping[Task, Partial]) -> None:
    """Replace the file's content with these parts, or remove it if there are none. Raises `OSError`, `StoreError`."""
    refuse_link(folder.inflight)
    if not partials:
        folder.inflight.unlink(missing_ok=True)
        return
    # The encoder does not support arrays.
    plain = (_Row(key, replace(part, ids=[*part.ids], prompt_ids=[*part.prompt_ids])) for key, part in partials.items())
    write_atomically(folder.inflight, (line(row, sealed=True) for row in plain))


# ---- whether a part is continued, and when the parts are written


KEEP_S = 30.0
"""Seconds between two writes of the file."""

TRIES = 2
"""After this many continuations that failed without a token, in any session, the whole sample is requested."""

DOWN = 0.25
"""A failed continuation counts as this many failures if its endpoint may be down, having answered no whole request
since the sample's last failure.
"""

TRIAL = 3
"""After this many consecutive failed continuations at an endpoint, one sample is requested whole, which shows whether
the endpoint is down. Its part is dropped only once the reply begins.
"""

CONTINUABLE = frozenset({"connect", "timeout", "cut", "server", "rate_limited"})
"""Failures after which the part of the reply that had arrived is still good, so that the next request continues it."""

REFUSALS = frozenset({"rejected", "refused"})
"""Failures that say nothing about a part, because the endpoint has not read it or cannot continue any."""


class Trust:
    """Decides whether to send an endpoint continuations; it may answer whole requests and still fail these.

    clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._failed_at: dict[Task, float] = {}  # When the sample's last continuation failed.
        self._answered: dict[str, float] = {}  # By URL, the send time of the last answered whole request.
        self._in_row: Counter[str] = Counter()  # By URL, continuations that failed in a row.

    def may_continue(self, url: str, failures: float) -> bool:
        """Whether the next request at `url` may continue a part with this many failures; called before each such
        request.
        """
        if self._in_row[url] >= TRIAL:
            self._in_row[url] = 0
            return False
        return failures < TRIES

    def record_start(self, url: str, sent_at: float, *, whole: bool) -> None:
        """Record that a request got tokens or a reply. whole: whether it was not a continuation."""
        self._in_row[url] = 0
        if whole:
            self._answered[url] = max(sent_at, self._answered.get(url, sent_at))

    def failed(self, task: Task, url: str) -> float:
        """Record a continuation that failed without a token; return how many failures it counts as."""
        before = self._failed_at.get(task, self._began)
        self._failed_at[task] = self._clock()
        self._in_row[url] += 1
        return 1.0 if self._answered.get(url, before) > before else DOWN


class PartWriter:
    """Keeps the partial replies that have arrived, for the requests and sessions that continue them.

    partials: the parts that can be continued, by sample, from earlier sessions and from failed requests.
    """

    def __init__(
        self,
        folder: RunFolder,
        missing: Sequence[Missing],
        on_event: Callable[..., None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the parts of samples that are still missing, as written by earlier sessions."""
        # Computed only if there are parts.
        rows = cache(lambda: {(row.benchmark, row.question_id): row.indices for row in missing})
        stored, self.damage = read_parts(folder)
        self.partials = {
            task: part
            for task, part in stored.items()
            if task.sample_index in rows().get((task.benchmark, task.question_id), ())
        }
        self._folder = folder
        self._on_event = on_event
        self._clock = clock
        self._views: dict[Task, Callable[[], Partial | None]] = {}
        self._trust = Trust(clock)
        self.anew: list[int] = []
        """Number of tokens in each part that was given up because no continuation of it was answered."""
        self.refusal = "in an earlier session"
        """The last failure of a continuation, in words; parts from the file may have failed earlier."""
        self._due = clock() + KEEP_S
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="inflight")
        self._writing: Future[None] | None = None
        self._given_up = False
        self._in_file = bool(stored or self.damage)
        if self._in_file:
            on_event(
                "inflight_found",
                samples=len(self.partials),
                damage=self.damage,
                tokens=sum(partial.tokens for partial in self.partials.values()),
            )

    def begin(self, task: Task, arriving: Arriving, view: Callable[[SoFar], Partial]) -> None:
        """Record that a request for `task` is being sent. view: makes a partial sample from what has arrived."""
        arriving.written = WrittenTokens()

        def now() -> Partial | None:
            so_far = arriving.so_far()
            # Continuing a part without a token would cost requests and save nothing.
            return view(so_far) if so_far is not None and so_far.n_events else None

        self._views[task] = now

    def write_if_due(self) -> None:
        """Write the file if it is due and the last write has ended."""
        if self._clock() >= self._due and (self._writing is None or self._writing.done()):
            self.keep_all()

    def keep_all(self) -> None:
        """Write the parts of all replies now."""
        self._due = self._clock() + KEEP_S
        now = {task: partial for task, view in [*self._views.items()] if (partial := view()) is not None}
        parts = {**self.partials, **now}
        if parts or self._in_file:
            self._in_file = True
            self._writing = self._writer.submit(self._write, parts)

    def to_continue(self, flight: Flight) -> Partial | None:
        """The part that the request may continue; None if there is none or if the whole sample is to be requested."""
        part = self.partials.get(flight.task)
        is_trusted = part is not None and self._trust.may_continue(flight.endpoint.base_url, part.failures)
        return part if is_trusted else None

    def failed(self, flight: Flight, failure: RequestFailed) -> None:
        """Record that the request failed. The part that arrived is kept for the next request or, if it is bad,
        dropped.
        """
        task, url = flight.task, flight.endpoint.base_url
        if failure.kind not in CONTINUABLE and failure.kind not in REFUSALS:
            self.forget(task)
        if failure.n_events:
            self.answered(flight)
        elif flight.continues and failure.sent and (part := self.partials.get(task)) is not None:
            self.refusal = f"{url}: {failure.message}"
            failures = part.failures + self._trust.failed(task, url)
            self.partials[task] = replace(part, failures=failures)
        self.keep(task)

    def answered(self, flight: Flight) -> None:
        """Record that a reply has arrived or begun. If it is not a continuation, an older part of its sample is
        useless.
        """
        self._trust.record_start(flight.endpoint.base_url, flight.sent_at, whole=not flight.continues)
        if not flight.continues and (part := self.partials.pop(flight.task, None)) is not None:
            self.anew.append(part.tokens)
            why = f"its continuations failed ({self.refusal})"
            self._on_event("written_anew", task=list(flight.task), tokens=part.tokens, reason=why)

    def keep(self, task: Task) -> None:
        """Keep what has arrived for `task`, whose request is over or about to be ended, as the part to continue."""
        view = self._views.pop(task, None)
        if view is not None and (partial := view()) is not None:
            self.partials[task] = partial

    def ended(self, task: Task) -> None:
        """Record that the request for `task` is over: nothing more will arrive."""
        self._views.pop(task, None)

    def forget(self, task: Task) -> None:
        """Drop the written part of `task`: the sample is stored, or its part is useless."""
        self._views.pop(task, None)
        self.partials.pop(task, None)

    def close(self) -> None:
        """Leave the parts to the next session."""
        self.keep_all()
        self._writer.shutdown()

    def _write(self, parts: Mapping[Task, Partial]) -> None:
        """Replace the file; runs on the writer's thread."""
        if self._given_up:
            return
        try:
            write_parts(self._folder, parts)
        except (OSError, StoreError) as error:
            self._given_up = True
            self._on_event("inflight_given_up", reason=str(error))
