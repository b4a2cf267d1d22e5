"""Decides whose call runs next: a sample owns an interpreter from its first call to its end; all share this machine.

    call ─▶ waits ─▶ runs ─▶ its interpreter is stopped, and keeps what it holds
              │
              └ for a free slot, or for memory

A stopped interpreter counts with the bytes that it holds, and an interpreter running a call with the maximum that it
may take. The sum stays below the limit. A sample's first call is admitted only if the calls of samples that already own
an interpreter still have room to run, so an owner continues, ends, and leaves its memory to those waiting.

If nothing runs nevertheless and no owner has a request in flight (together they hold too much, or their requests failed
and are waiting for a retry), the interpreter that holds the most memory is ended. Used on the network's loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

from harness.generation.run_progress import ToolProgress
from harness.runs.missing import Task

STUCK_S = 30.0
"""Seconds without a running call after which an interpreter is ended to free its memory."""

MEMORY_SHARE = 0.75
"""Fraction of this machine's memory that all interpreters together may take."""


@dataclass(eq=False)
class _Call:
    """A waiting call. most: maximum memory in bytes that its interpreter may take while it runs. least: minimum.
    may_run: set once it may run.
    """

    task: Task
    most: int
    least: int
    may_run: asyncio.Future[None]


class Turns:
    """Admits calls. memory: limit in bytes for all interpreters. cores: number of cores. most: maximum number of
    running calls.

    in_flight: a live view of the samples in flight. lose: ends the interpreter of a sample.
    """

    def __init__(
        self, memory: int, cores: int, most: int, in_flight: Collection[Task], lose: Callable[[Task], None]
    ) -> None:
        self._memory, self._cores, self._most = memory, cores, most
        self._in_flight, self._lose = in_flight, lose
        self._held: dict[Task, int] = {}  # owner → bytes while it is stopped
        self._running: dict[Task, int] = {}  # owner → bytes that its call may take
        self._waiting: list[_Call] = []

    async def begin(self, task: Task, most: int, least: int) -> None:
        """Wait until a call of `task` may run, whose interpreter takes from `least` to `most` bytes. `end` ends it."""
        call = _Call(task, most, least, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        try:
            self._admit()
            while not (await asyncio.wait([call.may_run], timeout=STUCK_S))[0]:
                self._unblock(task)
        except BaseException:
            if call in self._waiting:
                self._waiting.remove(call)
            else:
                self.end(task, least)
            raise

    def end(self, task: Task, held: int) -> None:
        """Record that a call has ended, and how many bytes its interpreter holds now."""
        del self._running[task]
        if task in self._held:
            self._held[task] = held
        self._admit()

    def forget(self, task: Task) -> None:
        """Record that `task` no longer has an interpreter."""
        if self._held.pop(task, None) is not None:
            self._admit()

    def progress(self) -> ToolProgress:
        """The current state."""
        return ToolProgress(
            running=len(self._running),
            waiting=len(self._waiting),
            interpreters=len(self._held),
            memory=self._counted,
            most_memory=self._memory,
            waits_for="memory" if len(self._running) < self._most else "processors",
        )

    @property
    def _counted(self) -> int:
        """Number of bytes that all interpreters may take at present."""
        stopped = sum(held for task, held in self._held.items() if task not in self._running)
        return stopped + sum(self._running.values())

    def _admit(self) -> None:
        """Start the calls that may run, those of interpreter owners first."""
        for call in sorted(self._waiting, key=lambda call: call.task not in self._held):
            if len(self._running) < self._most and self._fits(call):
                self._waiting.remove(call)
                self._held.setdefault(call.task, call.least)
                self._running[call.task] = call.most
                call.may_run.set_result(None)

    def _fits(self, call: _Call) -> bool:
        """Whether there is room for the call's memory now."""
        if self._held.keys() <= {call.task}:
            return True
        if call.task in self._held:
            return self._counted - self._held[call.task] + call.most <= self._memory
        room = max(call.most, min(self._cores * call.most, int(MEMORY_SHARE * self._memory)))
        all_stopped = sum(self._held.values())
        return self._counted + call.most <= self._memory and all_stopped + room <= self._memory

    def _unblock(self, task: Task) -> None:
        """End the interpreter that holds the most if nothing is running and no owner has a request in flight."""
        waiting = {call.task for call in self._waiting}
        owners = self._held.keys() - {task}
        if owners and not self._running and not any(owner in self._in_flight for owner in owners - waiting):
            most = max(owners, key=self._held.__getitem__)
            self._lose(most)
            self.forget(most)
