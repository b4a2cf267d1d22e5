"""The network thread: one asyncio loop that sends the dispatcher's requests and reports to it how they ended.

    dispatcher ── begin ──▶ this thread: one asyncio task per request
        ▲                               │
        └─────────── landed ◀───────────┘

The thread makes no decisions itself. Guarantees: the end of every request is reported exactly once; nothing runs on
after `join` has returned True. The thread that owns the session may only call `drain`, `stop` and `join`, and read
`progress` and `server_model`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial

from harness.client.loop import measure_lag
from harness.client.protocol.reply import Reply
from harness.core.records import Sample
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.state import Flight
from harness.generation.network.admission import Admission
from harness.generation.network.requests import OneByOne
from harness.generation.network.steps import StepByStep

POLL_S = 0.5
"""Seconds between two updates of the progress, checks of the endpoints file and so on; also the loop's longest
sleep.
"""


class NetworkThread:
    """A thread that sends a dispatcher's requests. Call `start`, then `join` until it returns True."""

    def __init__(self, dispatcher: Dispatcher, name: str) -> None:
        self._dispatcher = dispatcher
        self.progress = dispatcher.progress()
        """The latest progress; it is replaced as a whole, so any thread may read it."""
        self._next_poll = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait up to `seconds`; return whether the thread has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def listed(self, url: str) -> None:
        """Record that an endpoint lists the model; this has no effect on batches."""

    @property
    def server_model(self) -> str | None:
        """The name of the model in the run's first reply; None before that."""
        return self._dispatcher.model_name.name

    def _run(self) -> None:
        """The body of the thread."""
        raise NotImplementedError


class Network(NetworkThread):
    """Runs the network thread, which sends the requests of a session.

    Call `start`, then `join` until it returns True. sampler: sends a request; closed at the end. admission: decides
    which endpoints may be used; stopped at the end.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        sampler: OneByOne | StepByStep,
        loop_factory: Callable[[], asyncio.AbstractEventLoop],
        admission: Admission,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(dispatcher, "network")
        self._sampler = sampler
        self._loop_factory = loop_factory
        self._admission = admission
        self._clock = clock

        # Held while `_loop` is set or used. Re-entrant, since a signal handler may call `_run_on_loop` inside it.
        self._guard = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()

    # ---- for the owner's thread

    def drain(self, grace: float, why: str) -> None:
        """Send no more requests; those in flight may end within `grace` seconds."""
        self._run_on_loop(partial(self._dispatcher.drain, why, grace))

    def stop(self, why: str) -> None:
        """End every request now."""
        self._run_on_loop(partial(self._dispatcher.stop, why))

    def listed(self, url: str) -> None:
        self._run_on_loop(partial(self._dispatcher.listed, url))

    def _run_on_loop(self, action: Callable[[], None]) -> None:
        """Run `action` on the loop's thread, or right here if the loop is not running."""

        def act() -> None:
            action()
            self._wake.set()

        with self._guard:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(act)
            else:
                action()

    # ---- the loop

    def _run(self) -> None:
        """Run the loop from start to end; the body of the thread."""
        try:
            with asyncio.Runner(loop_factory=self._loop_factory) as runner:
                runner.run(self._main())
        except BaseException as error:  # noqa: BLE001 - whatever ends the thread must reach the owner
            self._dispatcher.fail(error)
        finally:
            self._admission.stop()

    async def _main(self) -> None:
        """Carry out the session, then close everything."""
        with self._guard:
            self._loop = asyncio.get_running_loop()
        try:
            with measure_lag():
                await self._send_requests()
        finally:
            await self._sampler.close()
            # From here on, `_run_on_loop` runs actions directly, because a loop that has ended runs nothing.
            with self._guard:
                self._loop = None
            self.progress = self._dispatcher.progress()

    async def _send_requests(self) -> None:
        """Send the dispatcher's requests until it has ended, including the last request."""
        dispatcher, pause = self._dispatcher, 0.0
        while True:
            try:
                for flight in dispatcher.begin():
                    self._send(flight)
                pause = 0.0 if self._poll() else dispatcher.pause()
            except Exception as error:  # noqa: BLE001 - ends the session, and is raised by the owner
                dispatcher.fail(error)
            if dispatcher.ended:
                return
            await self._sleep(pause)

    def _send(self, flight: Flight) -> None:
        """Send one request, in a separate task."""
        request = asyncio.get_running_loop().create_task(self._sampler.sample(flight))
        request.add_done_callback(partial(self._report_end, flight))
        flight.cancel = request.cancel

    def _report_end(self, flight: Flight, request: asyncio.Task[tuple[Sample, Reply]]) -> None:
        """Report how a request ended. A task may be cancelled before its first step, so tasks do not report this
        themselves.
        """
        error = None if request.cancelled() else request.exception()
        self._dispatcher.handle_end(flight, error if error or request.cancelled() else request.result())
        if error is not None:
            # The dispatcher keeps some failures; the frames of the traceback would keep the whole reply with them.
            error.__traceback__ = error.__context__ = None
        self._wake.set()

    def _poll(self) -> bool:
        """If `POLL_S` have passed since the last time, update `progress`, read the endpoints file, and so on.

        Returns whether it did so.
        """
        now = self._clock()
        if now < self._next_poll:
            return False
        self._next_poll = now + POLL_S
        asking = self._dispatcher.ending.may_send
        if asking and (endpoints := self._admission.changed()) is not None:
            self._dispatcher.replace_endpoints(endpoints)
        self.progress = self._dispatcher.progress()
        return True

    async def _sleep(self, seconds: float) -> None:
        """Sleep until something happens, for `seconds` or `POLL_S` at most."""
        try:
            async with asyncio.timeout(min(POLL_S, seconds)):
                await self._wake.wait()
        except TimeoutError:
            pass
        # Never before the wait: anything that happened since the last action must end the wait at once.
        self._wake.clear()
