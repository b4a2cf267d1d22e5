"""The event loop of the network thread, and how late it reads its sockets.

uvloop is used where it is installed: the same code takes three times the CPU time per token on asyncio's own loop.

Lag: a byte that arrives while the loop is busy waits until it is read. A heartbeat measures this: it is due every
`BEAT_S`, and its delay is how long bytes wait. Gaps between tokens that are shorter than about four times the lag say
more about the client than about the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar

BEAT_S = 0.05
"""Seconds between two beats."""

_STEPS = 4
"""Buckets per factor of two in lateness, so that the percentile is at most 19% too large."""

_SHORTEST_S = 1e-4
"""Lateness in seconds that counts as none: about the precision of the timers themselves."""

_GC_OBJECTS = 100_000
"""Number of new objects after which Python collects garbage (its default is 700).

The objects of a request live until it ends; with thousands of requests, each collection would search all of them.
"""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """An event loop for many streams, used as `asyncio.Runner(loop_factory=new_event_loop)`."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class LagMeter:
    """Counts how late the heartbeats are."""

    def __init__(self) -> None:
        self._late: Counter[int] = Counter()  # bucket → beats; bucket 0: on time

    def add(self, seconds: float) -> None:
        """Count a beat that was late by `seconds`."""
        late = seconds > _SHORTEST_S
        self._late[math.ceil(math.log2(seconds / _SHORTEST_S) * _STEPS) if late else 0] += 1

    def lag(self) -> float:
        """The 99th percentile so far, in seconds; 0 before the first beat."""
        n_beats, n_within = self._late.total(), 0
        for bucket in sorted(self._late):
            n_within += self._late[bucket]
            if 100 * n_within >= 99 * n_beats:
                return _SHORTEST_S * 2 ** (bucket / _STEPS) if bucket else 0.0
        return 0.0


_METER: ContextVar[LagMeter | None] = ContextVar("lag", default=None)


@contextlib.contextmanager
def measure_lag() -> Iterator[None]:
    """Measure the running loop's lag in this task and the tasks it starts; meanwhile garbage is collected rarely."""
    loop = asyncio.get_running_loop()
    meter = LagMeter()
    handle: asyncio.TimerHandle

    def beat(due: float) -> None:
        meter.add(loop.time() - due)
        wait()

    def wait() -> None:
        nonlocal handle
        due = loop.time() + BEAT_S
        handle = loop.call_at(due, beat, due)

    wait()
    token, thresholds = _METER.set(meter), gc.get_threshold()
    gc.set_threshold(_GC_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        handle.cancel()
        _METER.reset(token)


def current_lag() -> float | None:
    """The lag so far, in seconds, of the loop that `measure_lag` measures; None outside `measure_lag`."""
    meter = _METER.get()
    return None if meter is None else meter.lag()
