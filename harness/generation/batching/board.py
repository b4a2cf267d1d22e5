"""Sends requests in batches and collects their results, which come hours later.

Guarantees: a request in a batch is never sent again while that batch may answer it. Each request is asked at most
`attempts` times, and again only after its batch has ended without a reply. A result changes nothing if it names no
request of ours, or one that already has its result. No more results are in memory than wait for the disk. After `close`
at any moment, the next session finds its requests in their batches.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.errors import Sentence, ServerError
from harness.core.nouns import count_noun
from harness.core.records import Sample
from harness.core.secret import Secret
from harness.generation.batching.handing import BatchProvider, EndedBatch
from harness.generation.batching.lines import BatchResult, ask_id, read_result
from harness.generation.dispatch.actions import Ask
from harness.generation.network.requests import Requests
from harness.generation.network.sampler import Host
from harness.runs.record import Task

QUIET_S = 0.5
"""Seconds without a new request after which the waiting requests are sent as a batch."""

FIRST_LOOK_S, LONGEST_LOOK_S = 2.0, 60.0
"""Seconds between two looks at the batches: short at first, then longer, since batches take hours."""

GROUP = 256
"""Number of results that are passed on together."""

MAX_UNWRITTEN = 1024
"""Number of samples on their way to the disk at which reading results pauses; one sync serves them all."""


class Board:
    """Sends the requests of a session in batches and hands back their results.

    It runs on the network's event loop, and calls the provider on threads. host: the session, which ends if no batch
    can be made. attempts: how often a sample is asked at most. on_event: writes to the log. on_status: gets a sentence
    for a person when the state of a batch changes. secrets: keys that no text may show. first_look, quiet: seconds
    instead of `FIRST_LOOK_S` and `QUIET_S`, for tests.
    """

    def __init__(
        self,
        provider: BatchProvider,
        host: Host,
        *,
        attempts: int,
        max_body_bytes: int,
        on_event: Callable[..., None],
        on_status: Callable[[Sentence], None],
        secrets: Sequence[Secret] = (),
        first_look: float | None = None,
        quiet: float | None = None,
    ) -> None:
        self._provider = provider
        self._host = host
        self._attempts = attempts
        self._max_body_bytes = max_body_bytes
        self._on_event = on_event
        self._on_status = on_status
        self._secrets = secrets
        self._first_look = FIRST_LOOK_S if first_look is None else first_look
        self._quiet = QUIET_S if quiet is None else quiet
        self._awaited: dict[str, asyncio.Future[Reply]] = {}
        self._bodies: dict[str, bytes] = {}
        self._waiting: list[str] = []  # Ids of requests that are in no batch yet.
        self._looked_up: set[str] = set()  # Ids that were looked up in the batches of earlier sessions.
        self._batches: dict[str, set[str]] = {}  # Name of a batch → ids whose results are awaited from it.
        self._n_results: Counter[str] = Counter()  # By request id.
        self._cuts: Counter[str] = Counter()  # Name of a batch → how often reading its results broke off.
        self._states: dict[str, str] = {}  # Name of a batch → the last sentence on its state.
        self._n_new = 0
        self._working: asyncio.Task[None] | None = None

    async def reply(self, task: Task, body: bytes) -> Reply:
        """The reply of a batch for one sample. Raises `RequestFailed`."""
        ask = ask_id(task)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._awaited[ask] = future
        self._bodies[ask] = body
        self._waiting.append(ask)
        self._n_new += 1
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        try:
            return await future
        finally:
            # Also if the session ended the request: a result that comes later must find nobody.
            self._awaited.pop(ask, None)
            self._bodies.pop(ask, None)

    async def close(self) -> None:
        """Leave the batches as they are, after sending a file that is on its way."""
        if self._working is not None:
            self._working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._working

    # ---- the board's own task

    async def _work(self) -> None:
        """Send waiting requests in batches and look for results, until the session ends; report failures to `host`."""
        try:
            await self._all_quiet()
            pause = self._first_look
            while True:
                await self._hand_in()
                if await self._look():
                    pause = self._first_look
                    await self._all_quiet()
                    continue
                await asyncio.sleep(pause)
                pause = min(LONGEST_LOOK_S, 1.5 * pause)
        except asyncio.CancelledError:
            raise
        except RequestFailed as failure:  # of a step of the protocol: every request meets it
            self._host.fail(ServerError(f"no batch can be made: {failure.message}"))
        except BaseException as error:  # noqa: BLE001 - whatever it is must reach the owner
            self._host.fail(error)

    async def _all_quiet(self) -> None:
        """Wait until no more requests come: the dispatcher asks for all samples at once, and again for failed ones."""
        n = -1
        while n != self._n_new:
            n = self._n_new
            await asyncio.sleep(self._quiet)

    async def _find(self) -> None:
        """Find the new requests that batches of an earlier session ask already."""
        asks = set(self._waiting) - self._looked_up
        if not asks:
            return
        batches = await asyncio.to_thread(self._provider.find, asks)
        self._looked_up |= asks
        for ask, name in batches.items():
            self._batches.setdefault(name, set()).add(ask)
        self._waiting = [ask for ask in self._waiting if ask not in batches]
        if batches:
            self._on_event("batches_found", batches=sorted(self._batches), requests=len(batches))

    async def _hand_in(self) -> None:
        """Send all waiting requests to the provider, in batches within its bounds."""
        await self._find()
        # Only requests that were looked for: any other may lie in a batch of an earlier session.
        while waiting := [ask for ask in self._waiting if ask in self._bodies and ask in self._looked_up]:
            asks = {ask: self._bodies[ask] for ask in islice(waiting, self._provider.most_requests)}
            for ask in _over(asks, self._provider.most_bytes):
                del asks[ask]
            if not asks:
                failure = RequestFailed("rejected", f"the request exceeds a batch's {self._provider.most_bytes} bytes")
                _set(self._awaited[waiting[0]], failure)
                self._waiting.remove(waiting[0])
                continue
            handing = asyncio.create_task(asyncio.to_thread(self._provider.hand_in, asks))
            # Shielded: the thread cannot be stopped, and the batch that it begins must be noted.
            name = await asyncio.shield(handing)
            self._batches[name] = set(asks)
            self._waiting = [ask for ask in self._waiting if ask not in asks]
            self._on_status(Sentence(f"handed in: {count_noun(len(asks), 'request')}"))

    async def _look(self) -> bool:
        """Look at every batch; return whether one has ended."""
        any_ended = False
        # A copy, since reading a batch removes it.
        for name in list(self._batches):
            state = await asyncio.to_thread(self._provider.look, name)
            if isinstance(state, EndedBatch):
                await self._read(state)
                any_ended = True
            elif self._states.get(name) != state:
                self._states[name] = state
                self._on_status(state)
        return any_ended

    async def _read(self, ended: EndedBatch) -> None:
        """Pass on the results of a batch; requests without a reply are asked again, or given up."""
        left = self._batches.pop(ended.name)
        n_left, n_foreign = len(left), 0
        self._on_event("batch_ended", batch=ended.name, words=ended.words)
        self._on_status(Sentence(ended.words))
        results = ended.results
        try:
            while group := await asyncio.to_thread(lambda: list(islice(results, GROUP))):
                for result in map(partial(self._result, ended), group):
                    if result is None or result.ask not in left:
                        n_foreign += 1  # Also a result for a sample that is stored, or that is asked for later.
                        continue
                    left.discard(result.ask)
                    self._hand_on(result)
                await self._on_disk()
        except RequestFailed as failure:  # The results broke off; the next look reads the rest.
            self._cuts[ended.name] += 1
            if not failure.retryable or self._cuts[ended.name] >= self._attempts:
                raise
            self._on_event("batch_results_cut", batch=ended.name, kind=failure.kind, message=failure.message)
            # Only what was not passed on: the rest is with the dispatcher already.
            self._batches[ended.name] = left
            return
        if left or n_foreign:
            self._on_event("batch_left_open", batch=ended.name, without_result=len(left), not_awaited=n_foreign)
            self._on_status(
                Sentence(
                    f"{len(left)} of {n_left} requests have no result; {n_foreign} results belong to no request "
                    f"of this session"
                )
            )
        for ask in left:
            lacking = RequestFailed("server", f"{ended.words}, without a result for this request")
            self._hand_on(BatchResult(ask, None, lacking))

    def _result(self, ended: EndedBatch, line: bytes) -> BatchResult | None:
        """One line of a batch's results; None if it is not a result."""
        return read_result(
            line,
            started=ended.started,
            seconds=ended.seconds,
            max_body_bytes=self._max_body_bytes,
            secrets=self._secrets,
        )

    def _hand_on(self, result: BatchResult) -> None:
        """Give a result to the request that waits for it; after a failure that may pass, put it into the next batch."""
        future = self._awaited.get(result.ask)
        # The session may have ended this request meanwhile.
        if future is None or future.done():
            return
        self._n_results[result.ask] += 1
        if result.reply is not None:
            future.set_result(result.reply)
        elif result.failure is not None and result.failure.retryable and self._n_results[result.ask] < self._attempts:
            self._on_event(
                "batch_asks_again", request=result.ask, kind=result.failure.kind, message=result.failure.message
            )
            self._waiting.append(result.ask)
        else:
            _set(future, result.failure or RequestFailed("server", "no explanation"))

    async def _on_disk(self) -> None:
        """Wait until few samples wait for the disk: the texts of a whole batch would not fit in memory."""
        for _ in range(4):  # A result takes a few turns of the event loop to become a sample that waits for the disk.
            await asyncio.sleep(0)
        while self._host.n_unwritten >= MAX_UNWRITTEN:
            await asyncio.sleep(0.002)


class ByBatch:
    """A `Sampler` that asks through the board."""

    def __init__(self, requests: Requests, board: Board) -> None:
        self._requests = requests
        self._board = board

    async def sample(self, ask: Ask) -> tuple[Sample, Reply]:
        """Put the request on the board and wait for its reply, as `Sampler.sample` promises."""
        request = self._requests.write(ask.task)
        reply = await self._board.reply(ask.task, request.body)
        return self._requests.record(request, ask, reply), reply

    def arrived(self) -> Mapping[Task, int]:
        """Empty: the progress of a batch is unknown until it has ended."""
        return {}

    async def close(self) -> None:
        """Close the board."""
        await self._board.close()


def _over(asks: dict[str, bytes], most: int) -> Iterator[str]:
    """The ids of the requests that no longer fit: from the first with which the file would exceed `most` bytes on.

    asks: the bodies of the requests, by id.
    """
    n = 0
    for ask, body in list(asks.items()):
        n += len(body) + ROOM
        if n > most:
            yield ask


ROOM = 200
"""Largest number of bytes of a line besides the body and its id."""


def _set(future: asyncio.Future[Reply], failure: RequestFailed) -> None:
    if not future.done():
        future.set_exception(failure)
