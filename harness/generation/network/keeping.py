"""Decides which samples in flight are written to `inflight.jsonl`, and when. Used on the network's loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from harness.client.interface import Arriving
from harness.client.protocol.reply import FailureKind
from harness.client.protocol.written import SoFar, WrittenTokens
from harness.runs import inflight
from harness.runs.inflight import Inflight, Partial
from harness.runs.layout import RunFolder
from harness.runs.record import Owed, Task

KEEP_S = 5.0
"""Smallest number of seconds between two writes of the same stream (the reply of one request)."""

MIN_A_LOOK, SHARE_A_LOOK = 4, 8
"""Each look writes at most `MIN_A_LOOK` replies, plus one for every `SHARE_A_LOOK` in flight.

Looks come ten times in `KEEP_S`, so all streams get their turn, and no look blocks the loop for long.
"""

CONTINUABLE: frozenset[FailureKind] = frozenset({"connect", "timeout", "cut", "server", "rate_limited", "out_of_files"})
"""Failures after which the part of the reply that had arrived is still good, so that the next request continues it."""


@dataclass(slots=True)
class _Watched:
    """One request in flight. view: makes a partial sample of its reply so far. due: the time of its next write."""

    arriving: Arriving
    view: Callable[[SoFar], Partial]
    due: float


class Keeper:
    """Writes the parts of replies that have arrived to `inflight.jsonl`.

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
        stored = inflight.read(folder, lambda key: key.sample_index in rows().get((key.benchmark, key.question_id), ()))
        self.partials = stored.partials
        self.damaged = stored.damaged
        self._clock = clock
        self._watched: dict[Task, _Watched] = {}
        self._file = Inflight(folder, on_event)
        if stored.partials or stored.damaged or stored.notes:
            tokens = inflight.kept_tokens(stored.partials.values())
            on_event(
                "inflight_found",
                samples=len(stored.partials),
                tokens=tokens,
                damaged=stored.damaged,
                notes=stored.notes,
            )
            # The new file has no damaged lines, and no parts of samples that are no longer missing.
            self._file.rewrite(stored.partials)

    def begin(self, task: Task, arriving: Arriving, view: Callable[[SoFar], Partial]) -> None:
        """Note that a request for `task` is sent. view: makes a partial sample of what has arrived."""
        arriving.written = WrittenTokens()
        self._watched[task] = _Watched(arriving, view, self._clock() + KEEP_S)

    def look(self) -> None:
        """Write the parts of those replies whose turn it is."""
        # A slow disk must not fill the memory with writes that wait for it.
        if self._file.busy:
            return
        now = self._clock()
        due = ((task, watched) for task, watched in self._watched.items() if watched.due <= now)
        for task, watched in [*islice(due, MIN_A_LOOK + len(self._watched) // SHARE_A_LOOK)]:
            self._keep(task, watched)
        if self._file.wants_rewriting:
            self._file.rewrite({**self.partials, **dict(self._all())})

    def keep_all(self) -> None:
        """Write the parts of all replies now, because the process may be killed soon."""
        for task, partial in self._all():
            self._file.keep(task, partial)
        self._file.sync()

    def keep(self, task: Task) -> None:
        """Write the part of `task` that has arrived; its request is about to be ended."""
        if task in self._watched:
            self._keep(task, self._watched[task])

    def failed(self, task: Task, kind: FailureKind) -> None:
        """Note that the request failed. The part that arrived is stored for the next request, or dropped as bad."""
        watched = self._watched.pop(task, None)
        if kind not in CONTINUABLE:
            self.forget(task)
        # A part without a token would cost a continuation's requests and save nothing.
        elif watched is not None and (partial := _partial(watched)) is not None and partial.tokens:
            self.partials[task] = partial
            self._file.keep(task, partial)

    def ended(self, task: Task) -> None:
        """Stop watching the request for `task`, which is over. Its part stays in the file until `forget`."""
        self._watched.pop(task, None)

    def forget(self, task: Task) -> None:
        """Drop the written part of `task`: the sample is stored, or its part is of no use."""
        self.partials.pop(task, None)
        self._file.forget(task)

    def close(self) -> None:
        """Close the file; the parts in it are for the next session."""
        self._file.close()

    def _all(self) -> list[tuple[Task, Partial]]:
        """(sample, part so far) of each request in flight that has brought anything."""
        seen = [(task, _partial(watched)) for task, watched in [*self._watched.items()]]
        return [(key, partial) for key, partial in seen if partial is not None]

    def _keep(self, task: Task, watched: _Watched) -> None:
        watched.due = self._clock() + KEEP_S
        partial = _partial(watched)
        if partial is not None and partial.tokens:
            self._file.keep(task, partial)


def _partial(watched: _Watched) -> Partial | None:
    """The part of the sample that has arrived; None before the first event."""
    so_far = watched.arriving.so_far()
    return None if so_far is None or not so_far.n_events else watched.view(so_far)
