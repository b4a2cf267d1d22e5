"""The deadlines of one reply that is read in a task of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from harness.client.interface import Deadlines
from harness.client.protocol.sse import ReplyParser

LOOK_S = 0.5
"""Seconds between two looks at a reply's deadlines and connection."""


class Watch:
    """One timer, however many tokens come.

    An async context; on expiry it cancels the body and raises `TimeoutError`. `is_closed`: the connection is gone,
    though the reader was not told (see `aio`); seen twice in a row it ends the wait as `lost`.
    """

    def __init__(self, parser: ReplyParser, deadlines: Deadlines) -> None:
        self.lost = False
        self.is_closed: Callable[[], bool] = bool
        self._parser = parser
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        self._was_closed = False

    @property
    def expired(self) -> bool:
        """A deadline passed."""
        return self._timeout.expired()

    async def __aenter__(self) -> Watch:
        await self._timeout.__aenter__()
        self._look()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def _look(self) -> None:
        now, due = self._loop.time(), self._deadlines.due(self._parser)
        closed = self.is_closed()
        self.lost = closed and self._was_closed  # between the two looks, what had come was read
        self._was_closed = closed
        if due > now and not self.lost:
            self._timer = self._loop.call_at(min(due, now + LOOK_S), self._look)
        elif not self._timeout.expired():
            self._timeout.reschedule(now)
