"""Writes the parts of replies that have arrived to `inflight.jsonl`: every `KEEP_S`, on signals and at the end.

Used on the network's loop; a thread of its own writes. If the file cannot be written, it is given up for the session,
and the log says so.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

from harness.client.interface import Arriving
from harness.client.protocol.reply import RequestFailed
from harness.client.protocol.written import SoFar, WrittenTokens
from harness.core.errors import StoreError
from harness.runs import inflight
from harness.runs.inflight import Partial
from harness.runs.layout import RunFolder
from harness.runs.record import Owed, Task

KEEP_S = 30.0
"""Seconds between two writes of the file."""

TRIES = 2
"""After this many failed continuations of a sample without a token, it is asked for whole."""

DOWN = 0.25
"""A failed continuation counts as this many if the server seems to be down: it then fails whole requests, too."""

CONTINUABLE = frozenset({"connect", "timeout", "cut", "server", "rate_limited"})
"""Failures after which the part of the reply that had arrived is still good, so that the next request continues it."""


class Keeper:
    """Keeps the parts of replies that have arrived, for the requests and sessions that continue them.

    partials: the parts that can be continued, by sample; from earlier sessions and from failed requests.
    """

    def __init__(
        self,
        folder: RunFolder,
        owed: Sequence[Owed],
        on_event: Callable[..., None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the parts that earlier sessions wrote of samples which are still missing (`owed`)."""
        rows = cache(lambda: {(row.benchmark, row.question_id): row.indices for row in owed})  # made if there are parts
        stored, self.damage = inflight.read(folder)
        self.partials = {
            task: part for task, part in stored.items()
            if task.sample_index in rows().get((task.benchmark, task.question_id), ())
        }  # fmt: skip
        self._folder = folder
        self._on_event = on_event
        self._clock = clock
        self._views: dict[Task, Callable[[], Partial | None]] = {}
        self._failures: Counter[Task] = Counter()
        self._due = clock() + KEEP_S
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="inflight")
        self._writing: Future[None] | None = None
        self._given_up = False
        self._in_file = bool(stored or self.damage)
        if self._in_file:
            on_event(
                "inflight_found", samples=len(self.partials), damage=self.damage,
                tokens=sum(partial.tokens for partial in self.partials.values()),
            )  # fmt: skip

    def begin(self, task: Task, arriving: Arriving, view: Callable[[SoFar], Partial]) -> None:
        """Note that a request for `task` is sent. view: makes a partial sample of what has arrived."""
        arriving.written = WrittenTokens()

        def now() -> Partial | None:
            so_far = arriving.so_far()
            # A part without a token would cost a continuation's requests and save nothing.
            return view(so_far) if so_far is not None and so_far.n_events else None

        self._views[task] = now

    def look(self) -> None:
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

    def may_continue(self, task: Task) -> bool:
        """Whether the next request for `task` may continue its part."""
        return task in self.partials and self._failures[task] < TRIES

    def failed(self, task: Task, failure: RequestFailed, *, continued: bool) -> None:
        """Note that the request failed. The part that arrived stays for the next request, or is dropped as bad.

        continued: the request was to continue a part.
        """
        if failure.kind not in CONTINUABLE:
            self.forget(task)
        self.keep(task)
        if failure.n_events:
            del self._failures[task]
        elif continued:
            is_down = failure.kind in ("connect", "rate_limited") or failure.status in (502, 503, 504)
            self._failures[task] += DOWN if is_down else 1  # type: ignore[assignment]

    def keep(self, task: Task) -> None:
        """Take what has arrived of `task`, whose request is over or about to be ended, as the part to continue."""
        view = self._views.pop(task, None)
        if view is not None and (partial := view()) is not None:
            self.partials[task] = partial

    def ended(self, task: Task) -> None:
        """Note that the request for `task` is over: nothing more of it arrives."""
        self._views.pop(task, None)

    def forget(self, task: Task) -> None:
        """Drop the written part of `task`: the sample is stored, or its part is of no use."""
        self._views.pop(task, None)
        self.partials.pop(task, None)
        del self._failures[task]

    def close(self) -> None:
        """Leave the parts to the next session."""
        self.keep_all()
        self._writer.shutdown()

    def _write(self, parts: Mapping[Task, Partial]) -> None:
        """Replace the file; on the writer's thread."""
        if self._given_up:
            return
        try:
            inflight.write(self._folder, parts)
        except (OSError, StoreError) as error:
            self._given_up = True
            self._on_event("inflight_given_up", reason=str(error))
