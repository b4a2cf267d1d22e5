"""An asyncio loop that drains token streams inside its selector, and measures how late it comes to its sockets.

A token event that only has to be put aside wakes no task and makes no turn of the loop: `select` reads it and waits
on. Everything else (timers, connects, other sockets, thread-safe calls) is asyncio as ever, for the selector returns
as soon as one of those is due, or as soon as a stream says that it has news.

The lag is the share of time that the loop spends elsewhere, by the length of the absence. A token that arrives while
the loop is busy is stamped late by the rest of that absence (user stamps), or merged with the next one (kernel stamps).
So each absence counts by its length, and time spent waiting for sockets counts as 0. Gaps between tokens that are
shorter than some four times the lag say more about the client than about the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import select
import selectors
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

TICK_S = 0.002
"""Seconds of sleep between two polls while many streams are open: one poll then finds many ready, and half the system
calls are saved."""

TICK_STREAMS = 32
"""Fewest open streams with which the loop sleeps between polls."""

TICK_EVENTS = 64
"""Streams ready at one poll from which on the loop does not sleep: it is behind."""

GC_OBJECTS = 100_000
"""New objects that bring about a garbage collection while the loop runs (Python's default is 700). What a request makes
lives as long as the request: with thousands in flight each collection would look at all of it and find nothing."""

_MAX_EVENTS = 4096
"""Most sockets that one poll reports."""

_BYTES = select.EPOLLIN if hasattr(select, "epoll") else 0
_EDGE = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET if hasattr(select, "epoll") else 0
"""A stream is told of once when bytes come; otherwise each poll would look again at all that were just read."""

Drain = Callable[[], bool]
"""Reads what a stream's socket has; returns whether asyncio has something to do now."""


class StreamSelector(selectors.BaseSelector):
    """epoll for asyncio's sockets and for streams, which are drained at once."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._streams: dict[int, Drain] = {}
        self.lag = LagMeter()

    def attach(self, fd: int, drain: Drain) -> None:
        """From now on `drain` is called whenever bytes come to `fd`, once: if it leaves some, it must call `again`."""
        self._streams[fd] = drain
        self._epoll.register(fd, _EDGE)

    def again(self, fd: int) -> None:
        """`fd` may have more to read than was read."""
        self._epoll.modify(fd, _EDGE)

    def detach(self, fd: int) -> None:
        """End `attach`, before the socket is closed."""
        if self._streams.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """See `selectors.BaseSelector`."""
        fd = _descriptor(fileobj)
        if fd in self._keys or fd in self._streams:
            raise KeyError(f"{fileobj!r} is registered already")
        key = selectors.SelectorKey(fileobj, fd, events, data)
        self._epoll.register(fd, _mask(events))
        self._keys[fd] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """See `selectors.BaseSelector`."""
        key = self._keys.pop(_descriptor(fileobj))
        with contextlib.suppress(OSError):  # closed before it was unregistered
            self._epoll.unregister(key.fd)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """See `selectors.BaseSelector`."""
        fd = _descriptor(fileobj)
        old = self._keys[fd]
        if events != old.events:
            self._epoll.modify(fd, _mask(events))
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See `selectors.BaseSelector`; streams are drained and not reported."""
        poll, streams, keys, lag = self._epoll.poll, self._streams, self._keys, self.lag
        wait = None if timeout is None else max(0.0, timeout)
        due = None if wait is None else time.monotonic() + wait
        while True:
            ready: list[tuple[selectors.SelectorKey, int]] = []
            news = False
            lag.polls()
            events = poll(wait, _MAX_EVENTS)
            lag.polled()
            for fd, mask in events:
                drain = streams.get(fd)
                if drain is not None:
                    if drain():
                        news = True
                    if mask != _BYTES and fd in streams:  # the end came along, and no event will tell of it
                        self.again(fd)
                elif (key := keys.get(fd)) is not None:
                    readable = selectors.EVENT_READ if mask & ~select.EPOLLOUT else 0
                    writable = selectors.EVENT_WRITE if mask & ~select.EPOLLIN else 0
                    ready.append((key, (readable | writable) & key.events))
            if ready or news or not events:
                return ready
            if due is not None:
                wait = due - time.monotonic()
                if wait <= 0:
                    return ready
            if len(streams) >= TICK_STREAMS and len(events) < TICK_EVENTS and (wait is None or wait > TICK_S):
                lag.polls()
                time.sleep(TICK_S)
                lag.polled()

    def close(self) -> None:
        """See `selectors.BaseSelector`."""
        self._epoll.close()
        self._keys.clear()
        self._streams.clear()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """See `selectors.BaseSelector`; the keys are descriptors."""
        return self._keys

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        """See `selectors.BaseSelector`."""
        return self._keys[_descriptor(fileobj)]


class StreamLoop(asyncio.SelectorEventLoop):
    """asyncio's loop over a `StreamSelector`, which is its attribute `streams`."""

    def __init__(self) -> None:
        self.streams = StreamSelector()
        super().__init__(self.streams)

    @property
    def lag(self) -> Lag:
        """How late sockets were read since the loop was made."""
        return self.streams.lag.lag()

    def run_forever(self) -> None:
        """See `asyncio.AbstractEventLoop`."""
        before = gc.get_threshold()
        gc.set_threshold(GC_OBJECTS, *before[1:])
        try:
            super().run_forever()
        finally:
            gc.set_threshold(*before)


def current_lag() -> Lag | None:
    """How long what had arrived waited for the running loop so far; None where its kind does not measure that."""
    loop = asyncio.get_running_loop()
    return loop.lag if isinstance(loop, StreamLoop) else None


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The loop for many streams: use as `asyncio.Runner(loop_factory=new_event_loop)`. asyncio's own without epoll."""
    return StreamLoop() if hasattr(select, "epoll") else asyncio.new_event_loop()


def _descriptor(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())


def _mask(events: int) -> int:
    readable = select.EPOLLIN if events & selectors.EVENT_READ else 0
    return readable | (select.EPOLLOUT if events & selectors.EVENT_WRITE else 0)


# ---- how late the loop comes to its sockets


_STEPS = 4
"""Buckets to a factor of two: a quantile is exact to 19 %, rounded up."""

_SHORTEST_S = 1e-6


class Lag(NamedTuple):
    """Seconds. A token that comes at a random moment waits for at most `p50` in half of all cases."""

    p50: float
    p99: float


class LagMeter:
    """Told when the loop polls its sockets and when it comes back from that."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._busy: dict[int, float] = {}  # seconds of absences by bucket
        self._waited = 0.0
        self._since: float | None = None
        self._polling_since = clock()

    def polls(self) -> None:
        """The loop looks at its sockets now."""
        now = self._polling_since = self._clock()
        if self._since is not None and (absent := now - self._since) > _SHORTEST_S:
            bucket = math.ceil(math.log2(absent / _SHORTEST_S) * _STEPS)
            self._busy[bucket] = self._busy.get(bucket, 0.0) + absent

    def polled(self) -> None:
        """It has looked; what came until now is read at once."""
        now = self._since = self._clock()
        self._waited += now - self._polling_since

    def lag(self) -> Lag:
        """The quantiles so far; zeros before the first poll."""
        return Lag(self._quantile(0.5), self._quantile(0.99))

    def _quantile(self, q: float) -> float:
        owed = q * (self._waited + sum(self._busy.values())) - self._waited
        if owed <= 0:
            return 0.0
        for bucket in sorted(self._busy):
            owed -= self._busy[bucket]
            if owed <= 1e-12:
                break
        return float(_SHORTEST_S * 2 ** (bucket / _STEPS))
