"""Requests the missing samples of a session in batches, whose results arrive hours later.

    dispatcher ── begin ──▶ find in earlier batches, hand in the rest ──▶ look, pause, look
         ▲                                                                      │
         └──────── landed ◀── results of the batches that have ended ◀─────────┘

Guarantees: a request in a batch is never sent again while that batch may answer it. Each request is sent at most
`attempts` times, and again only after its batch has ended without a reply. A result is ignored if it belongs to none of
our requests or to one that already has its result. A sample is stored before the next result is read. After `stop`,
or a kill at any moment, the next session finds its requests in their batches.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from harness.client.address.endpoint import secrets_of
from harness.client.batch_service import BatchService
from harness.client.interface import encode_body
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.core.errors import ServerError
from harness.core.number_text import count_noun
from harness.generation.batching.submission import (
    BatchLedger,
    BatchResult,
    EndedBatch,
    ServiceBatches,
    ask_id,
    read_result,
)
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.state import Flight
from harness.generation.network.requests import Requests, SampleRequest
from harness.generation.network.thread import POLL_S, NetworkThread
from harness.generation.settings import RunSettings
from harness.runs.layout import RunFolder

FIRST_LOOK_S, LONGEST_LOOK_S = 2.0, 60.0
"""Seconds between two checks of the batches: short at first, then longer, since batches take hours."""

LINE_BYTES = 200
"""Maximum size in bytes of a request's line, excluding its body and id."""


class BatchLoop(NetworkThread):
    """A thread that requests the samples of a session in batches.

    on_event: writes to the run's log. on_status: receives a sentence for the user when the state of a batch changes.
    """

    def __init__(
        self,
        settings: RunSettings,
        folder: RunFolder,
        dispatcher: Dispatcher,
        requests: Requests,
        *,
        on_event: Callable[..., None],
        on_status: Callable[[str], None],
    ) -> None:
        super().__init__(dispatcher, "batches")
        self._settings = settings
        self._folder = folder
        self._requests = requests
        self._on_event = on_event
        self._on_status = on_status
        self._secrets = (*secrets_of(settings.endpoints[0]), *settings.spelling.secrets)
        self._asks: dict[str, tuple[Flight, SampleRequest]] = {}  # By request id: all requests without a result so far.
        self._waiting: list[str] = []  # Ids of requests that are in no batch yet.
        self._looked_up: set[str] = set()  # Ids that have been looked up in the batches of earlier sessions.
        self._batches: dict[str, set[str]] = {}  # Name of a batch → ids whose results are awaited from it.
        self._n_results: Counter[str] = Counter()  # By request id.
        self._cuts: Counter[str] = Counter()  # Name of a batch → how often reading its results broke off.
        self._states: dict[str, str] = {}  # Name of a batch → the last sentence on its state.
        self._stopped = threading.Event()
        self._why = ""

    # ---- for the owner's thread

    def stop(self, why: str) -> None:
        """End the session after the current step, and leave the batches as they are."""
        self._why = self._why or why
        self._stopped.set()

    # ---- the thread

    def _run(self) -> None:
        """Make batches and collect their results until nothing is missing or `stop` is called; the thread's body.

        Failures are passed to the dispatcher, which ends the session; nothing is raised.
        """
        try:
            settings, batching = self._settings, self._settings.batching
            assert batching is not None
            provider = ServiceBatches(
                service=BatchService(settings.endpoints[0], secrets=settings.spelling.secrets, sleep=self._wait),
                ledger=BatchLedger(self._folder),
                facts=batching,
                path=batching.prefix + settings.spelling.api.path,
                patience=settings.patience.outage,
                on_event=self._on_event,
                on_status=self._on_status,
                sleep=self._stopped.wait,
            )
            pause = FIRST_LOOK_S
            while self._take_requests() and not self._stopped.is_set():
                self._hand_in(provider)
                if self._check_batches(provider):
                    pause = FIRST_LOOK_S
                else:
                    self._stopped.wait(pause)
                    pause = min(LONGEST_LOOK_S, 1.5 * pause)
        except RequestFailed as failure:  # in a step of the protocol, which every request needs
            if not self._stopped.is_set():
                self._dispatcher.fail(ServerError(f"cannot create a batch: {failure.message}"))
        except BaseException as error:  # noqa: BLE001 - whatever it is must reach the owner
            self._dispatcher.fail(error)
        if self._stopped.is_set():
            self._dispatcher.stop(self._why)
        self._take_requests()
        self.progress = self._dispatcher.progress()

    def _wait(self, seconds: float) -> None:
        """Wait while the provider checks a file. Raises `RequestFailed` if the session is to end."""
        if self._stopped.wait(seconds):
            raise RequestFailed("cut", "the session ends")

    def _take_requests(self) -> bool:
        """Take the dispatcher's new requests; return False if the session has ended."""
        if (now := time.monotonic()) >= self._next_poll:
            self._next_poll = now + POLL_S
            self.progress = self._dispatcher.progress()
        for flight in self._dispatcher.begin():
            ask = ask_id(flight.task)
            self._asks[ask] = flight, self._requests.write(flight.task)
            self._waiting.append(ask)
            flight.cancel = partial(self._cancel, flight)
        return not self._dispatcher.ended

    def _cancel(self, flight: Flight) -> None:
        """End a request; a result that arrives later is ignored."""
        if self._asks.pop(ask_id(flight.task), None) is not None:
            self._dispatcher.handle_end(flight, None)

    def _hand_in(self, provider: ServiceBatches) -> None:
        """Find waiting requests in batches of earlier sessions, and send the others within the provider's limits."""
        if new := set(self._waiting) - self._looked_up:
            found = provider.find(new)
            self._looked_up |= new
            for ask, name in found.items():
                self._batches.setdefault(name, set()).add(ask)
            self._waiting = [ask for ask in self._waiting if ask not in found]
            if found:
                self._on_event("batches_found", batches=sorted(self._batches), requests=len(found))
        # A rejected request may end the session and so all the other requests.
        while self._waiting and self._asks and not self._stopped.is_set():
            asks: dict[str, bytes] = {}
            n_bytes = 0
            for ask in self._waiting[: provider.facts.most_requests]:
                body = encode_body(self._asks[ask][1].body)
                n_bytes += len(body) + LINE_BYTES
                if n_bytes > provider.facts.most_bytes:
                    break
                asks[ask] = body
            if not asks:
                too_long = RequestFailed(
                    "rejected", f"the request exceeds the maximum batch size ({provider.facts.most_bytes} bytes)"
                )
                self._take(BatchResult(self._waiting.pop(0), too_long))
                continue
            name = provider.hand_in(asks)
            self._batches[name] = set(asks)
            self._waiting = self._waiting[len(asks) :]
            self._on_status(f"submitted: {count_noun(len(asks), 'request')}")

    def _check_batches(self, provider: ServiceBatches) -> bool:
        """Check every batch; return whether one has ended."""
        any_ended = False
        for name in list(self._batches):
            if self._stopped.is_set():
                break
            state = provider.check(name)
            if isinstance(state, EndedBatch):
                any_ended |= self._read(state)
            elif self._states.get(name) != state:
                self._states[name] = state
                self._on_status(state)
        return any_ended

    def _read(self, ended: EndedBatch) -> bool:
        """Process the results of a batch; requests without a reply are retried or given up.

        Returns False if the results broke off; the rest is read at a later check.
        """
        awaited = self._batches.pop(ended.name)
        n_awaited, n_foreign = len(awaited), 0
        self._on_event("batch_ended", batch=ended.name, words=ended.words)
        self._on_status(ended.words)
        read = partial(
            read_result,
            api=self._settings.spelling.api,
            started=ended.started,
            seconds=ended.seconds,
            max_body_bytes=self._settings.max_body_bytes,
            secrets=self._secrets,
        )
        try:
            for result in map(read, ended.results):
                if result is None or result.ask not in awaited:
                    n_foreign += 1  # This includes results for samples that are stored or that will be requested later.
                    continue
                awaited.discard(result.ask)
                self._take(result)
                if not self._take_requests() or self._stopped.is_set():
                    return True
        except RequestFailed as failure:  # The results broke off; the next check reads the rest.
            self._cuts[ended.name] += 1
            if not failure.retryable or self._cuts[ended.name] >= self._settings.patience.attempts:
                raise
            self._on_event("batch_results_cut", batch=ended.name, kind=failure.kind, message=failure.message)
            self._batches[ended.name] = awaited
            return False
        if awaited or n_foreign:
            self._on_event("batch_left_open", batch=ended.name, without_result=len(awaited), not_awaited=n_foreign)
            self._on_status(
                f"{len(awaited)} of {n_awaited} requests have no result; {n_foreign} results do not belong to any "
                f"request in this session"
            )
        for ask in awaited:
            lacking = RequestFailed("server", f"{ended.words}, but without a result for this request", in_reply=True)
            self._take(BatchResult(ask, lacking))
        return True

    def _take(self, result: BatchResult) -> None:
        """Report a result to the dispatcher; after a retryable failure, the request goes into the next batch."""
        if result.ask not in self._asks:  # The session has ended this request in the meantime.
            return
        flight, request = self._asks[result.ask]
        self._n_results[result.ask] += 1
        outcome = result.outcome
        if isinstance(outcome, Reply):
            del self._asks[result.ask]
            self._dispatcher.handle_end(flight, (self._requests.record(request, flight, outcome), outcome))
        elif outcome.retryable and self._n_results[result.ask] < self._settings.patience.attempts:
            self._on_event("batch_asks_again", request=result.ask, kind=outcome.kind, message=outcome.message)
            self._waiting.append(result.ask)
        else:
            del self._asks[result.ask]
            self._dispatcher.handle_end(flight, outcome)
