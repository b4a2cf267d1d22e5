"""The network thread: one asyncio loop that keeps the servers busy and hands finished samples to the journals.

Promises: at most `concurrency` requests in flight and as many samples again on their way to the disk, whatever the
size of the run; each owed sample is in the journal, or among the causes at the end; nothing outlives `join`.
The owner's thread talks to it through `drain`, `stop`, `progress` and `join` only.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from harness.client.fast.event_loop import current_lag
from harness.client.fast.lag import Lag
from harness.client.interface import Transport
from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.errors import HarnessError, ServerError, StoppedByRule, StoreError, UsageError
from harness.core.inert import quoted
from harness.core.records import Sample
from harness.core.wording import option
from harness.generation.dispatch.canary import Canary, Duplicates, ModelName, ends_in_loop
from harness.generation.dispatch.causes import Causes
from harness.generation.dispatch.lanes import Lanes
from harness.generation.dispatch.quota import RateLimit
from harness.generation.dispatch.retry import Attempts, RetryBudget, RetryPolicy
from harness.generation.dispatch.schedule import UNKNOWN_LENGTH, Scheduler
from harness.generation.dispatch.too_many_requests import Ticket
from harness.generation.network.asking import Worker, completion_tokens
from harness.generation.network.control import ControlSocket
from harness.generation.network.descriptors import Reserve
from harness.generation.network.endpoints_file import EndpointsFile
from harness.generation.plan import Task
from harness.generation.progress import BenchmarkProgress, Progress
from harness.generation.settings import RunSettings
from harness.generation.spending import Spent
from harness.runs.journal import Journal
from harness.runs.record import RecordRefused

LOOK_AROUND_S = 0.5
"""At least so often the loop looks at deadlines and renews the progress facts."""

HOPELESS_QUESTIONS = 3
"""So many different questions refused, and nothing ever accepted, stop the run: the request itself is wrong."""


_LOWERED = "the concurrency was lowered on the way"


class Counts:
    """What has happened so far. done: samples on disk by benchmark, former sessions included."""

    def __init__(self, done: Mapping[str, int], total: Mapping[str, int]) -> None:
        self.done = dict(done)
        self.total = dict(total)
        self.finished = 0
        self.truncated = 0
        self.loops = 0
        self.tokens = 0
        self.spent = Spent()
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
        endpoints_file: EndpointsFile | None = None,
        control: Callable[[Network], ControlSocket] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._concurrency = settings.concurrency
        self._endpoints_file = endpoints_file
        self._control = control
        self._scheduler = scheduler
        self._lanes = lanes
        self._journals = journals
        self.counts = counts
        self._transport_factory = transport_factory
        self._loop_factory = loop_factory
        self._make_worker = make_worker
        self._policy = policy
        # A restart of the server costs every request in flight one retry; that alone must not use up the budget.
        self._budget = RetryBudget(floor=_retry_floor(settings.concurrency))
        self._rate = RateLimit(settings.requests_per_minute, settings.tokens_per_minute, clock)
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
        self.lag: Lag | None = None
        """How late the loop came to its sockets; None where its kind does not measure that."""
        self.warnings: list[str] = []
        """What happened on the way that the user should know."""

        self._attempts: dict[Task, Attempts] = {}
        self._later: list[tuple[float, Task]] = []
        self._requests: dict[asyncio.Task[None], Task] = {}
        self._refused_questions: set[tuple[str, str]] = set()
        self._written: deque[tuple[Task, Future[None]]] = deque()
        self._n_unwritten = 0
        self._paused = False
        self._draining = False
        self._stopping = False
        self._starved_since: float | None = None
        self._grace_ends: float | None = None
        self._started = clock()
        self._next_look = 0.0
        # Between `_tell` and the loop's beginning and end; a signal may call `_tell` inside `_tell`.
        self._guard = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._worker: Worker
        self._reserve: Reserve
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
        self._reserve = Reserve()
        control: ControlSocket | None = None
        try:
            self._worker = self._make_worker(transport)
            if self._control is not None:
                control = self._control(self)
                await control.open()
            while not self._ended():
                self._fill()
                self._look_around()
                if not self._ended():
                    await self._sleep()
        finally:
            if control is not None:
                await control.close()
            for request in self._requests:
                request.cancel()
            await asyncio.gather(*self._requests, return_exceptions=True)
            while self._n_unwritten:
                await self._sleep()
                self._collect_written()
            await transport.close()
            self._reserve.release()
            self.lag = current_lag()
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
        if len(self._requests) < self._concurrency and (wait := self._rate.wait()):
            pauses.append(wait)
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
        self._lanes.advance()
        if self._draining or self._paused:
            return
        for place in range(len(self._lanes)):
            self._scheduler.set_available(place, self._lanes.available(place))
        limit = self._concurrency
        while len(self._requests) < limit and self._n_unwritten <= limit and not self._rate.wait():
            if not self._send_one():
                return

    def _send_one(self) -> bool:
        for place in self._lanes.with_room():
            task = self._scheduler.next(place, probe=self._lanes[place].set_aside)
            if task is not None:
                ticket = self._lanes.sent(place)
                expected = self._usual_tokens()
                self._rate.sent(expected)
                request = asyncio.get_running_loop().create_task(self._ask(task, ticket, expected))
                self._requests[request] = task
                request.add_done_callback(partial(self._request_ended, ticket))
                return True
        return False

    def _usual_tokens(self) -> float:
        """Tokens of a request and its reply, as far as is known."""
        counts = self.counts
        if not counts.finished:
            return UNKNOWN_LENGTH
        return (counts.tokens + counts.spent.prompt_tokens) / counts.finished

    def _look_around(self) -> None:
        now = self._clock()
        if self._grace_ends is not None and now >= self._grace_ends:
            self._stopping = True
        hopeless = None if self._paused else self._lanes.gave_up()
        if hopeless is not None and not self._stopping:
            self.stopped = hopeless
            self._on_event("stopped", reason=hopeless)
            if self._lanes.unreachable:
                self._fatal(ServerError(f"{hopeless}. Is the server started, and is {option('base_url')} right?"))
            self._draining = self._stopping = True
        if now >= self._next_look:
            self._next_look = now + LOOK_AROUND_S
            if self._starved_since is not None:  # not at once, or the connects under way would take it
                self._reserve.release()
            if self._endpoints_file is not None and not self._draining:
                self._follow(self._endpoints_file)
            self.progress = self._snapshot()

    def _follow(self, file: EndpointsFile) -> str:
        """Take on what the file of endpoints says, if it has changed. Returns what came of it."""
        try:
            endpoints = file.changed()
        except UsageError as error:
            self._on_event("endpoints_not_changed", reason=str(error))
            return f"{error.sentence.marked} The endpoints stay as they are."
        if endpoints is None:
            return "the file has not changed"
        joined, left = self._lanes.replace(endpoints)
        for _ in joined:
            self._scheduler.add_endpoint()
        self._on_event("endpoints_changed", joined=joined, left=left)
        self._wake.set()
        return f"{len(joined)} joined, {len(left)} left, {self._lanes.n_present} endpoints now"

    # ---- one request

    async def _ask(self, task: Task, ticket: Ticket, expected_tokens: float) -> None:
        attempts = self._attempts.setdefault(task, Attempts(self._policy, self._budget))
        number = attempts.begin()
        try:
            sample, reply = await self._worker.ask(task, self._lanes[ticket.place].endpoint, number)
        except RequestFailed as failure:
            self._failed(task, ticket, attempts, failure)
        except Exception as error:  # noqa: BLE001 - one request's bug costs one sample, and is listed
            self._lanes.cancelled(ticket)
            self._on_event("internal_error", task=list(task), trace=traceback.format_exc())
            self._give_up(task, "internal", f"{type(error).__name__}: {quoted(str(error))}")
        else:
            self._rate.settle(expected_tokens, (sample.usage.prompt_tokens or 0) + completion_tokens(sample))
            self._arrived(task, ticket, sample, reply)
            return
        self._rate.settle(expected_tokens, 0)

    def _request_ended(self, ticket: Ticket, request: asyncio.Task[None]) -> None:
        del self._requests[request]
        if request.cancelled():  # perhaps before its first step
            self._lanes.cancelled(ticket)
        elif (error := request.exception()) is not None:
            self._fatal(error)
        self._wake.set()

    def _arrived(self, task: Task, ticket: Ticket, sample: Sample, reply: Reply) -> None:
        self._lanes.answered_by(ticket)
        self._starved_since = None
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
        self.counts.spent.add(sample.usage)
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

    def _failed(self, task: Task, ticket: Ticket, attempts: Attempts, failure: RequestFailed) -> None:
        self.counts.failures += 1
        lane = self._lanes[ticket.place]
        endpoint = lane.endpoint.base_url
        self._on_event(
            "request_failed",
            task=list(task), endpoint=endpoint, kind=failure.kind, status=failure.status,
            message=failure.message, attempt=attempts.count,
        )  # fmt: skip
        if failure.kind == "out_of_files":
            self._lanes.cancelled(ticket)
            self._out_of_files(task, failure)
            return
        if not failure.retryable:
            others = lane.left or self._lanes.n_present > 1
            # What came on the way was not asked for its context, as those are that a run begins with.
            unfit = failure.kind == "too_long" or (failure.stops_run and not lane.n_done)
            if unfit and lane.joined_late and others:
                self._not_welcome(task, ticket, failure)
                return
            self._lanes.answered_by(ticket)
            if failure.stops_run:
                self.causes.met(task, failure)
                self._fatal(ServerError(f"{endpoint} refuses: {failure.message}"))
            else:
                self._refused(task, failure, endpoint)
            return
        of_endpoint = _tells_of_the_endpoint(failure, lane.set_aside)
        told = self._lanes.failed(ticket, failure)
        delay: float | None = 0.0
        if failure.kind == "rate_limited":
            if not self._budget.take(failure.kind) and told:
                self._lanes.hold(ticket.place)
        elif not of_endpoint:
            delay = attempts.failed(failure)
        if delay is None:
            self._give_up(task, failure.kind, f"{failure.message} ({attempts.final})", failure.status)
            return
        self._again(task, failure, delay)

    def _again(self, task: Task, failure: RequestFailed, delay: float) -> None:
        """Ask for `task` once more after `delay` seconds."""
        self.causes.met(task, failure)
        self.counts.retries += 1
        if delay > 0:
            heapq.heappush(self._later, (self._clock() + delay, task))
        else:
            self._scheduler.give_back(task)

    def _not_welcome(self, task: Task, ticket: Ticket, failure: RequestFailed) -> None:
        """An endpoint that joined a run under way refuses what the others take: the run goes on without it."""
        self._lanes.cancelled(ticket)
        if not self._lanes[ticket.place].left:
            url = self._lanes[ticket.place].endpoint.base_url
            self._lanes.dismiss(ticket.place)
            self.warnings.append(f"{url} joined the run, refused and was left out: {failure.message}")
            self._on_event("endpoint_left_out", endpoint=url, reason=failure.message)
        self._again(task, failure, 0.0)

    def _out_of_files(self, task: Task, failure: RequestFailed) -> None:
        """This machine has no descriptor left for a socket: fewer requests at once, and a pause before this one."""
        now = self._clock()
        if self._starved_since is None:
            self._starved_since = now
        elif now - self._starved_since > self._lanes.patience:
            self._fatal(ServerError(failure.message))
            return
        fewer = max(1, min(self._concurrency, self._lanes.in_flight))
        if fewer < self._concurrency:
            self.set_concurrency(fewer)
            self._on_event("concurrency_lowered", to=fewer, reason=failure.message)
            self.warnings = [w for w in self.warnings if not w.startswith(_LOWERED)]
            self.warnings.append(f"{_LOWERED} to {fewer}: {failure.message}.")
        longest = min(self._settings.patience.longest_wait, 2 * self._settings.patience.first_wait)
        self._again(task, failure, random.uniform(longest / 2, longest))  # noqa: S311 - jitter, not a secret

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
            self.stopped = error.sentence.marked if isinstance(error, HarnessError) else str(error)
            self._on_event("stopped", reason=str(error), error=type(error).__name__)
        self._draining = self._stopping = True

    # ---- steering, on the loop

    @property
    def draining(self) -> bool:
        """Whether the session only waits for what is in flight."""
        return self._draining

    def set_paused(self, paused: bool) -> None:
        """Paused: nothing more is asked, what is in flight ends."""
        self._paused = paused
        if not paused:
            self._lanes.rested()
        self._wake.set()

    def drain_unhurried(self, why: str) -> None:
        """End the session when what is in flight has ended, however long that takes."""
        self._draining = True
        self.stopped = self.stopped or why
        self._wake.set()

    def set_concurrency(self, number: int) -> None:
        """Another number of requests in flight."""
        self._concurrency = number
        self._lanes.set_concurrency(number)
        self._budget.floor = max(self._budget.floor, _retry_floor(number))
        self._wake.set()

    def cancel(self, question_id: str, index: int | None, why: str) -> int:
        """Ask no more in this session for one sample of the question, or for all; in every benchmark that has it."""
        running = {task: request for request, task in self._requests.items() if not request.done()}
        wanted = {*running, *(task for _, task in self._later), *self._scheduler.waiting(question_id)}
        found = [t for t in wanted if t.question_id == question_id and index in (None, t.sample_index)]
        self._later = [entry for entry in self._later if entry[1] not in found]
        heapq.heapify(self._later)
        for task in found:
            if self._scheduler.drop_waiting(task):
                self.causes.gave_up(task, "cancelled", why)
            else:
                self._give_up(task, "cancelled", why)
            if task in running:
                running[task].cancel()
        self._wake.set()
        return len(found)

    def reload(self) -> str:
        """Read the file of endpoints again. Raises `UsageError` when there is none."""
        if self._endpoints_file is None:
            raise UsageError(f"this run has no file of endpoints; {option('endpoints_file')} names one")
        self._endpoints_file.forget()
        return self._follow(self._endpoints_file)

    def facts(self) -> Progress:
        """What is going on right now."""
        self.progress = self._snapshot()
        return self.progress

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
            concurrency=self._concurrency,
            paused=self._paused,
            stopping=self._draining,
        )


def _retry_floor(concurrency: int) -> int:
    return 50 + 4 * concurrency


def _tells_of_the_endpoint(failure: RequestFailed, set_aside: bool) -> bool:
    """Whether a failure says nothing about the sample, so that it costs no attempt at it."""
    return failure.kind == "connect" or failure.status in (502, 503, 504) or (set_aside and failure.kind == "timeout")
