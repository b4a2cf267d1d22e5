"""An asyncio loop that reads token streams inside its selector, and measures how late it reads its sockets.

Streams: `select` itself calls a stream's drain function when bytes come, and goes on waiting. So a token that only has
to be stored wakes no task and makes no turn of the loop. All else (timers, connects, other sockets, calls from threads)
is asyncio as usual: `select` returns as soon as one of these is due, or a drain function says that asyncio has work.

Lag: how long a byte that arrives at a random moment waits until it is read. While the loop waits for sockets, that is
0. While it does other work, it is the rest of that work; so each stretch of work counts by its length. A late read
makes a user stamp too late, and lets two tokens arrive as one. Gaps between tokens that are shorter than about four
times the lag therefore say more about the client than about the server.
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
"""Seconds that the loop sleeps between two polls while many streams are open.

The next poll then finds many streams ready, which saves half of the system calls.
"""

TICK_STREAMS = 32
"""Number of open streams from which on the loop sleeps between polls."""

TICK_EVENTS = 64
"""Number of streams ready at one poll from which on the loop does not sleep, because it is late."""

GC_OBJECTS = 100_000
"""Number of new objects after which Python collects garbage while the loop runs (Python's default is 700).

The objects of a request live until it ends; with thousands of requests each collection would search all of them and
free nothing.
"""

GC_OBJECTS_OF_A_STREAM = 50
"""Number of new objects that each open stream adds to `GC_OBJECTS`: some more than a request in flight holds."""

_GC_STREAMS = 512
"""Number of streams after each of which the number of objects is set anew."""

_MAX_EVENTS = 4096
"""Largest number of sockets that one poll reports."""

_BYTES = select.EPOLLIN if hasattr(select, "epoll") else 0
"""epoll's event for "bytes came, and nothing else"."""
_EDGE = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET if hasattr(select, "epoll") else 0
"""epoll's events for a stream, reported once when bytes come.

By default each poll would report all streams that still have bytes.
"""

Drain = Callable[[], bool]
"""Reads a stream's socket; returns whether asyncio has work now, so that `select` must return."""


class StreamSelector(selectors.BaseSelector):
    """A selector on epoll for asyncio.

    For asyncio's sockets it returns events as usual; for streams it calls their drain functions itself.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._streams: dict[int, Drain] = {}
        self.lag = LagMeter()

    def attach(self, fd: int, drain: Drain) -> None:
        """Add a stream: `drain` is called once whenever bytes come to `fd`. If it leaves some, it must call `again`."""
        self._streams[fd] = drain
        self._epoll.register(fd, _EDGE)
        if len(self._streams) % _GC_STREAMS == 0:
            objects = GC_OBJECTS + GC_OBJECTS_OF_A_STREAM * len(self._streams)
            gc.set_threshold(objects, *gc.get_threshold()[1:])

    def again(self, fd: int) -> None:
        """Call the stream's drain function once more, since `fd` may still have bytes."""
        # Modifying a descriptor makes epoll report it anew if bytes are there, though nothing new has come.
        self._epoll.modify(fd, _EDGE)

    def detach(self, fd: int) -> None:
        """Remove the stream `fd`; to be called before its socket is closed."""
        if self._streams.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Report events of a descriptor from now on. Raises `KeyError` if it is registered already."""
        fd = _descriptor(fileobj)
        if fd in self._keys or fd in self._streams:
            raise KeyError(f"{fileobj!r} is registered already")
        key = selectors.SelectorKey(fileobj, fd, events, data)
        self._epoll.register(fd, _mask(events))
        self._keys[fd] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Report no more events of a descriptor, which may be closed already."""
        key = self._keys.pop(_descriptor(fileobj))
        with contextlib.suppress(OSError):  # closed before it was unregistered
            self._epoll.unregister(key.fd)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Change the events or the data of a registered descriptor."""
        fd = _descriptor(fileobj)
        old = self._keys[fd]
        if events != old.events:
            self._epoll.modify(fd, _mask(events))
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events, and return those of registered descriptors; streams are drained and not reported."""
        poll, streams, keys, lag = self._epoll.poll, self._streams, self._keys, self.lag
        wait = None if timeout is None else max(0.0, timeout)
        due = None if wait is None else time.monotonic() + wait
        while True:
            ready: list[tuple[selectors.SelectorKey, int]] = []
            news = False
            lag.begin_poll()
            events = poll(wait, _MAX_EVENTS)
            lag.end_poll()
            for fd, mask in events:
                drain = streams.get(fd)
                if drain is not None:
                    if drain():
                        news = True
                    if mask != _BYTES and fd in streams:  # the connection's end came too, and is not reported again
                        self.again(fd)
                elif (key := keys.get(fd)) is not None:
                    # Errors and hang-ups count as both, so whoever waits for either learns of them.
                    readable = selectors.EVENT_READ if mask & ~select.EPOLLOUT else 0
                    writable = selectors.EVENT_WRITE if mask & ~select.EPOLLIN else 0
                    ready.append((key, (readable | writable) & key.events))
            if ready or news or not events:
                return ready
            # Streams alone must not begin asyncio's timeout anew: its timers would fire late or never.
            if due is not None:
                wait = due - time.monotonic()
                if wait <= 0:
                    return ready
            if len(streams) >= TICK_STREAMS and len(events) < TICK_EVENTS and (wait is None or wait > TICK_S):
                lag.begin_poll()
                time.sleep(TICK_S)
                lag.end_poll()

    def close(self) -> None:
        """Close the epoll descriptor and drop all registrations."""
        self._epoll.close()
        self._keys.clear()
        self._streams.clear()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """The registrations by descriptor."""
        return self._keys

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        """The registration of a descriptor. Raises `KeyError`."""
        return self._keys[_descriptor(fileobj)]


class StreamLoop(asyncio.SelectorEventLoop):
    """asyncio's loop over a `StreamSelector`, which is its attribute `streams`."""

    def __init__(self) -> None:
        self.streams = StreamSelector()
        super().__init__(self.streams)

    @property
    def lag(self) -> Lag:
        """How long bytes that arrived had to wait until this loop read them, over the loop's life."""
        return self.streams.lag.lag()

    def run_forever(self) -> None:
        """Run the loop; meanwhile garbage is collected only every `GC_OBJECTS` new objects."""
        before = gc.get_threshold()
        gc.set_threshold(GC_OBJECTS, *before[1:])
        try:
            super().run_forever()
        finally:
            gc.set_threshold(*before)


def current_lag() -> Lag | None:
    """The lag of the running event loop; None if it is another kind of loop, which does not measure it."""
    loop = asyncio.get_running_loop()
    return loop.lag if isinstance(loop, StreamLoop) else None


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a loop for many streams; on a system without epoll, asyncio's own loop.

    Used as `asyncio.Runner(loop_factory=new_event_loop)`.
    """
    return StreamLoop() if hasattr(select, "epoll") else asyncio.new_event_loop()


def _descriptor(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())


def _mask(events: int) -> int:
    readable = select.EPOLLIN if events & selectors.EVENT_READ else 0
    return readable | (select.EPOLLOUT if events & selectors.EVENT_WRITE else 0)


# ---- how late the loop reads its sockets


_STEPS = 4
"""Number of buckets for each factor of two in length; a quantile is at most 19 % too large."""

_SHORTEST_S = 1e-6
"""Stretches of work up to this length are not counted."""


class Lag(NamedTuple):
    """Median and 99th percentile of the lag, in seconds: half of all arriving bytes wait at most `p50`."""

    p50: float
    p99: float


class LagMeter:
    """Measures how late an event loop reads its sockets.

    The loop calls `begin_poll` before it polls its sockets, and `end_poll` after the poll.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._busy: dict[int, float] = {}  # bucket → total seconds of the stretches of work of that length
        self._idle = 0.0  # seconds in polls
        self._since: float | None = None  # end of the latest poll
        self._polling_since = clock()

    def begin_poll(self) -> None:
        """Take note that the loop polls its sockets now: a stretch of work ends."""
        now = self._polling_since = self._clock()
        if self._since is not None and (absent := now - self._since) > _SHORTEST_S:
            bucket = math.ceil(math.log2(absent / _SHORTEST_S) * _STEPS)
            self._busy[bucket] = self._busy.get(bucket, 0.0) + absent

    def end_poll(self) -> None:
        """Take note that the poll has returned: bytes that came until now are read at once."""
        now = self._since = self._clock()
        self._idle += now - self._polling_since

    def lag(self) -> Lag:
        """The quantiles so far; zeros before the first poll."""
        return Lag(self._quantile(0.5), self._quantile(0.99))

    def _quantile(self, q: float) -> float:
        """The `q` quantile of the lag over time, in seconds: for the fraction `q` of all time the lag was at most this.

        Lag: how long bytes that had arrived lay unread.
        """
        # While the loop is idle the lag is 0, so the idle time is counted first.
        left = q * (self._idle + sum(self._busy.values())) - self._idle
        if left <= 0:
            return 0.0
        for bucket in sorted(self._busy):
            left -= self._busy[bucket]
            if left <= 1e-12:
                break
        return float(_SHORTEST_S * 2 ** (bucket / _STEPS))
