"""The network thread: one asyncio loop that keeps the servers busy and hands finished samples to the journals.

Promises: at most `concurrency` requests in flight and as many samples again on their way to the disk, whatever the
size of the run; each owed sample is in the journal, or among the causes at the end; nothing outlives `join`.
The owner's thread talks to it through `drain`, `stop`, `progress` and `join` only.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from harness.client.reply import Reply, RequestFailed
from harness.client.retry import Attempts, RetryBudget, RetryPolicy
from harness.client.transport import Transport
from harness.core.errors import HarnessError, ServerError, StoppedByRule, StoreError
from harness.core.inert import quoted
from harness.core.records import Sample
from harness.generation.canary import Canary, Duplicates, ModelName, ends_in_loop
from harness.generation.causes import Causes
from harness.generation.endpoints import Lanes
from harness.generation.plan import Task
from harness.generation.progress import BenchmarkProgress, Progress
from harness.generation.schedule import Scheduler
from harness.generation.settings import RunSettings
from harness.generation.workers import Worker, completion_tokens
from harness.runs.journal import Journal
from harness.runs.record import RecordRefused

LOOK_AROUND_S = 0.5
"""At least so often the loop looks at deadlines and renews the progress facts."""

HOPELESS_QUESTIONS = 3
"""So many different questions refused, and nothing ever accepted, stop the run: the request itself is wrong."""


class Counts:
    """What has happened so far. done: samples on disk by benchmark, former sessions included."""

    def __init__(self, done: Mapping[str, int], total: Mapping[str, int]) -> None:
        self.done = dict(done)
        self.total = dict(total)
        self.finished = 0
        self.truncated = 0
        self.loops = 0
        self.tokens = 0
        self.failures = 0
        self.retries = 0
        self.notes: dict[str, int] = {}


class Network:
    """See the module. `start`, then `join` until it returns True, then read the attributes."""

    def __init__(
        self,
        settings: RunSettings,
        scheduler: Scheduler,
        lanes: Lanes,
        journals: Mapping[str, Journal],
        counts: Counts,
        *,
        transport_factory: Callable[[], Transport],
        loop_factory: Callable[[], asyncio.AbstractEventLoop],
        make_worker: Callable[[Transport], Worker],
        policy: RetryPolicy,
        canary: Canary,
        model_name: ModelName,
        on_event: Callable[..., None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._scheduler = scheduler
        self._lanes = lanes
        self._journals = journals
        self.counts = counts
        self._transport_factory = transport_factory
        self._loop_factory = loop_factory
        self._make_worker = make_worker
        self._policy = policy
        # A restart of the server costs every request in flight one retry; that alone must not use up the budget.
        self._budget = RetryBudget(floor=50 + 4 * settings.concurrency)
        self._canary = canary
        self.model_name = model_name
        self._on_event = on_event
        self._clock = clock

        self.causes = Causes()
        self.duplicates = Duplicates()
        self.error: BaseException | None = None
        """Why the run was ended before its time; to be raised by the owner."""
        self.rule = ""
        """The user's rule that ended the run early; empty if none did."""
        self.stopped = ""
        """Why nothing more was asked, in a sentence; empty if everything owed was."""

        self._attempts: dict[Task, Attempts] = {}
        self._later: list[tuple[float, Task]] = []
        self._requests: set[asyncio.Task[None]] = set()
        self._refused_questions: set[tuple[str, str]] = set()
        self._written: deque[tuple[Task, Future[None]]] = deque()
        self._n_unwritten = 0
        self._draining = False
        self._stopping = False
        self._grace_ends: float | None = None
        self._started = clock()
        self._next_look = 0.0
        # Between `_tell` and the loop's beginning and end; a signal may call `_tell` inside `_tell`.
        self._guard = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._worker: Worker
        self.progress = self._snapshot()
        """The latest facts; replaced as a whole, so any thread may read it."""
        self._thread = threading.Thread(target=self._run, name="network", daemon=True)

    # ---- for the owner's thread

    def start(self) -> None:
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait so long at most; whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def drain(self, grace: float, why: str) -> None:
        """Ask nothing more; what is in flight may end within `grace` seconds."""

        def begin() -> None:
            self._draining = True
            self._grace_ends = self._clock() + grace
            self.stopped = self.stopped or why

        self._tell(begin)

    def stop(self, why: str) -> None:
        """End every request now."""

        def end() -> None:
            self._draining = self._stopping = True
            self.stopped = self.stopped or why

        self._tell(end)

    def fail(self, error: BaseException) -> None:
        """End every request now; `error` is the reason."""
        self._tell(lambda: self._fatal(error))

    def end_by_rule(self, why: str) -> None:
        """On the loop: the scheduler hands out nothing more, by a rule of the user's; what is in flight ends."""
        self.rule = self.stopped = self.stopped or why

    def _tell(self, action: Callable[[], None]) -> None:
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
        try:
            with asyncio.Runner(loop_factory=self._loop_factory) as runner:
                runner.run(self._main())
        except BaseException as error:  # noqa: BLE001 - whatever ends the thread must reach the owner
            self.error = self.error or error

    async def _main(self) -> None:
        with self._guard:
            self._loop = asyncio.get_running_loop()
        transport = self._transport_factory()
        try:
            self._worker = self._make_worker(transport)
            while not self._ended():
                self._fill()
                self._look_around()
                if not self._ended():
                    await self._sleep()
        finally:
            for request in self._requests:
                request.cancel()
            await asyncio.gather(*self._requests, return_exceptions=True)
            while self._n_unwritten:
                await self._sleep()
                self._collect_written()
            await transport.close()
            with self._guard:
                self._loop = None
            self.progress = self._snapshot()

    def _ended(self) -> bool:
        if self._stopping:
            return True
        if self._requests or (self._n_unwritten and not self._draining):
            return False
        return self._draining or not (self._later or self._scheduler.n_waiting)

    async def _sleep(self) -> None:
        now = self._clock()
        pauses = [LOOK_AROUND_S]
        if self._later:
            pauses.append(self._later[0][0] - now)
        if (change := self._lanes.next_change()) is not None:
            pauses.append(change)
        if self._grace_ends is not None:
            pauses.append(self._grace_ends - now)
        try:
            async with asyncio.timeout(max(0.001, min(pauses))):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    def _fill(self) -> None:
        """Send as many requests as there is room for."""
        self._collect_written()
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            self._scheduler.give_back(heapq.heappop(self._later)[1])
        if self._draining:
            return
        for place in range(len(self._lanes)):
            self._scheduler.set_available(place, self._lanes.available(place))
        limit = self._settings.concurrency
        while len(self._requests) < limit and self._n_unwritten <= limit and self._send_one():
            pass

    def _send_one(self) -> bool:
        for place in self._lanes.with_room():
            task = self._scheduler.next(place, probe=self._lanes[place].set_aside)
            if task is not None:
                self._lanes.sent(place)
                request = asyncio.get_running_loop().create_task(self._ask(task, place))
                self._requests.add(request)
                request.add_done_callback(self._request_ended)
                return True
        return False

    def _look_around(self) -> None:
        now = self._clock()
        if self._grace_ends is not None and now >= self._grace_ends:
            self._stopping = True
        hopeless = self._lanes.gave_up()
        if hopeless is not None and not self._stopping:
            self.stopped = hopeless
            self._on_event("stopped", reason=hopeless)
            if self._lanes.unreachable:
                self._fatal(ServerError(f"{hopeless}. Is the server started, and is --base-url right?"))
            self._draining = self._stopping = True
        if now >= self._next_look:
            self._next_look = now + LOOK_AROUND_S
            self.progress = self._snapshot()

    # ---- one request

    async def _ask(self, task: Task, place: int) -> None:
        attempts = self._attempts.setdefault(task, Attempts(self._policy, self._budget))
        number = attempts.begin()
        sent_at = self._clock()
        try:
            sample, reply = await self._worker.ask(task, self._lanes[place].endpoint, number)
        except RequestFailed as failure:
            self._failed(task, place, attempts, failure, sent_at)
        except asyncio.CancelledError:
            self._lanes.cancelled(place)
            raise
        except Exception as error:  # noqa: BLE001 - one request's bug costs one sample, and is listed
            self._lanes.cancelled(place)
            self._on_event("internal_error", task=list(task), trace=traceback.format_exc())
            self._give_up(task, "internal", f"{type(error).__name__}: {quoted(str(error))}")
        else:
            self._arrived(task, place, sample, reply)

    def _request_ended(self, request: asyncio.Task[None]) -> None:
        self._requests.discard(request)
        if not request.cancelled() and (error := request.exception()) is not None:
            self._fatal(error)
        self._wake.set()

    def _arrived(self, task: Task, place: int, sample: Sample, reply: Reply) -> None:
        self._lanes.answered_by(place)
        if (changed := self.model_name.observe(sample.endpoint, sample.server_model)) is not None:
            self._fatal(StoppedByRule(changed))
            return
        tokens = completion_tokens(sample)
        self._scheduler.finish(task, tokens)
        self._attempts.pop(task, None)
        self.causes.arrived(task)
        self.counts.finished += 1
        self.counts.truncated += sample.truncated
        self.counts.loops += ends_in_loop(reply)
        self.counts.tokens += tokens
        sampling = self._settings.benchmarks[task.benchmark].sampling
        if sampling.temperature != 0:
            self.duplicates.observe(task, reply)
        for note in reply.notes:
            self.counts.notes[note] = self.counts.notes.get(note, 0) + 1
        written = self._journals[task.benchmark].append(sample)
        self._n_unwritten += 1
        written.add_done_callback(lambda future: self._note_written(task, future))
        stop = self._canary.observe(task, reply, sampling.max_tokens)
        if stop is not None:
            self._fatal(StoppedByRule(stop))

    def _failed(self, task: Task, place: int, attempts: Attempts, failure: RequestFailed, sent_at: float) -> None:
        self.counts.failures += 1
        endpoint = self._lanes[place].endpoint.base_url
        self._on_event(
            "request_failed",
            task=list(task), endpoint=endpoint, kind=failure.kind, status=failure.status,
            message=failure.message, attempt=attempts.count,
        )  # fmt: skip
        if not failure.retryable:
            self._lanes.answered_by(place)
            if failure.stops_run:
                self.causes.met(task, failure)
                self._fatal(ServerError(f"{endpoint} refuses: {failure.message}"))
            else:
                self._refused(task, failure, endpoint)
            return
        of_endpoint = _tells_of_the_endpoint(failure, self._lanes[place].set_aside)
        self._lanes.failed(place, failure, sent_at)
        delay: float | None = 0.0
        if failure.kind == "rate_limited":
            if not self._budget.take(failure.kind):
                self._lanes.hold(place)
        elif not of_endpoint:
            delay = attempts.failed(failure)
        if delay is None:
            self._give_up(task, failure.kind, f"{failure.message} ({attempts.final})", failure.status)
            return
        self.causes.met(task, failure)
        self.counts.retries += 1
        if delay > 0:
            heapq.heappush(self._later, (self._clock() + delay, task))
        else:
            self._scheduler.give_back(task)

    def _refused(self, task: Task, failure: RequestFailed, endpoint: str) -> None:
        """The server will never take this payload (or never end it)."""
        self._give_up(task, failure.kind, failure.message, failure.status)
        if failure.kind == "too_long":
            for other in self._scheduler.drop_question(task.benchmark, task.question_id):
                self.causes.gave_up(other, failure.kind, failure.message, failure.status)
            if self._settings.accept_missing:
                return
        elif failure.kind != "rejected":
            return
        self._refused_questions.add((task.benchmark, task.question_id))
        if not self.counts.finished and len(self._refused_questions) >= HOPELESS_QUESTIONS:
            self._fatal(ServerError(f"{endpoint} rejects every request: {failure.message}"))

    def _give_up(self, task: Task, kind: str, message: str, status: int | None = None) -> None:
        self._scheduler.drop(task)
        self._attempts.pop(task, None)
        self.causes.gave_up(task, kind, message, status)

    def _fatal(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
            self.stopped = str(error)
            self._on_event("stopped", reason=str(error), error=type(error).__name__)
        self._draining = self._stopping = True

    # ---- samples on their way to the disk

    def _note_written(self, task: Task, future: Future[None]) -> None:
        """On a journal's thread: tell the loop, once for all that are waiting."""
        self._written.append((task, future))
        with self._guard:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._wake.set)

    def _collect_written(self) -> None:
        while self._written:
            task, future = self._written.popleft()
            self._n_unwritten -= 1
            error = future.exception()
            if error is None:
                self.counts.done[task.benchmark] += 1
            elif isinstance(error, RecordRefused):
                self.causes.gave_up(task, "malformed", str(error))
            else:
                self._fatal(error if isinstance(error, HarnessError) else StoreError(str(error)))

    # ---- facts

    def _snapshot(self) -> Progress:
        counts = self.counts
        elapsed = self._clock() - self._started
        rate = eta = None
        if counts.finished and elapsed > 0:
            rate = (counts.tokens + self._scheduler.running_tokens()) / elapsed
            eta = self._scheduler.expected_tokens_left() / rate if rate > 0 else None
        return Progress(
            elapsed_s=elapsed,
            done=sum(counts.done.values()),
            total=sum(counts.total.values()),
            in_flight=len(self._requests),
            waiting=self._scheduler.n_waiting + len(self._later),
            given_up=self.causes.n_given_up,
            failures=counts.failures,
            retries=counts.retries,
            truncated=counts.truncated,
            tokens=counts.tokens,
            tokens_per_s=rate,
            eta_s=eta,
            benchmarks=tuple(BenchmarkProgress(name=n, done=counts.done[n], total=t) for n, t in counts.total.items()),
            endpoints=self._lanes.progress(),
            stopping=self._draining,
        )


def _tells_of_the_endpoint(failure: RequestFailed, set_aside: bool) -> bool:
    """Whether a failure says nothing about the sample, so that it costs no attempt at it."""
    return failure.kind == "connect" or failure.status in (502, 503, 504) or (set_aside and failure.kind == "timeout")
