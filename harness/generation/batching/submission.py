"""Sends requests to a provider as batches, reports their progress, and reads their results. Blocking.

Steps that are safe to repeat are retried for `patience` seconds. A batch is created only once: before a second attempt,
it is looked up in the provider's list. The lines of a batch's files, for a request and for its result:

{"custom_id":"3f9c…-0","method":"POST","url":"/v1/chat/completions","body":{…}}
{"custom_id":"3f9c…-0","response":{"status_code":200,"request_id":"…","body":{…}},"error":null}

The run's file `batches.jsonl` records which samples were sent to a provider in which batch, so that none is sent twice.
Its lines are append-only and have a checksum; each is on disk before the call returns. A batch is recorded before it is
sent (`planned`), and again once the provider has given it an id (`sent`), so that after a crash in between, the batch
can be found by our name in the provider's list. `void`: the batch never began or it failed; its requests must be sent
again.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from harness.client.address.providers import Batches
from harness.client.apis.api import API
from harness.client.batch_service import Batch, BatchService
from harness.client.protocol.failures import RequestFailed, failure_of_event, failure_of_status
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.core import codec
from harness.core.codec import digest
from harness.core.errors import ServerError
from harness.core.number_text import count_noun
from harness.core.records import SCHEMA_VERSION
from harness.core.sanitize import visible
from harness.core.secret import Secret
from harness.runs.layout import RunFolder
from harness.runs.line_file import append_line, line, read_appended
from harness.runs.missing import Task

T = TypeVar("T")

LONGEST_PAUSE_S = 30.0
"""Longest pause, in seconds, between two attempts at a step."""


class EndedBatch(NamedTuple):
    """A batch that has ended. results: its lines, replies before errors. started: Unix time. seconds: its duration.

    words: the provider's description of it.
    """

    name: str
    results: Iterator[bytes]
    started: float
    seconds: float
    words: str


@dataclass(slots=True, kw_only=True)
class ServiceBatches:
    """Batches at a provider.

    facts: facts about the provider. path: the API path of a request, as stated in lines and batches. patience: seconds
    for which a failed step is retried. on_status: receives sentences for the user. sleep: waits for the given number of
    seconds; returns True immediately if the session is to end. Each call may raise `RequestFailed`, `ServerError` or
    `StoreError`.
    """

    service: BatchService
    ledger: BatchLedger
    facts: Batches
    path: str
    patience: float
    on_event: Callable[..., None]
    on_status: Callable[[str], None]
    sleep: Callable[[float], bool]

    def find(self, ask_ids: set[str]) -> Mapping[str, str]:
        """Request id → name of the batch that already contains it; ids that are in no batch are left out.

        A batch without a service id may or may not have been submitted, so it is first looked up at the service by the
        name we gave it; if the service does not have it, it is void. Also raises `ServerError` if a batch was sent to
        another address.
        """
        # If a batch is void, an earlier one may have its requests, possibly also without an id; hence the loop.
        while without_id := {b.name: b for b in self.ledger.holding(ask_ids).values() if not b.id}:
            for batch in without_id.values():
                batch_there = self._tried("finding the batch", lambda name=batch.name: self.service.find(name))  # type: ignore[misc]
                if batch_there is not None:
                    self.ledger.record_sent(batch.name, batch_there.id)
                else:
                    self.ledger.void(batch.name, "never begun")
                    self.on_event("batch_never_begun", batch=batch.name)
        holding = self.ledger.holding(ask_ids)
        elsewhere = {b.endpoint for b in holding.values()} - {self.service.endpoint.base_url}
        if elsewhere:
            where = visible(", ".join(sorted(elsewhere)), 200)
            raise ServerError(
                f"this run submitted batches to {where}: use that address. To abandon those batches and "
                f"request the samples again, delete {self.ledger.path}."
            )
        return {ask: batch.name for ask, batch in holding.items()}

    def hand_in(self, asks: Mapping[str, bytes]) -> str:
        """Submit a batch with these requests and return its name.

        The ledger records the batch before and after, so that the next session can tell if the process died in between.
        """
        # Random, so that it can be found in the provider's list, which other runs share.
        name = f"harness-{secrets.token_hex(12)}"
        self.ledger.planned(name, self.service.endpoint.base_url, asks)
        with tempfile.TemporaryFile() as file:  # A file without a name, because bodies may hold private text.
            for ask, body in asks.items():
                head = codec.encode(ask), codec.encode(self.path)
                file.write(b'{"custom_id":%s,"method":"POST","url":%s,"body":%s}\n' % (*head, body))
            self.on_status(f"uploading {count_noun(len(asks), 'request')}, {file.tell():,} bytes")
            file_id = self._tried("the upload", lambda: self.service.upload(f"{name}.jsonl", file))
        self.ledger.record_sent(name, self._begin(name, file_id).id)
        self.on_event("batch_sent", batch=name, id=self.ledger.batches[name].id, requests=len(asks))
        return name

    def check(self, name: str) -> EndedBatch | str:
        """The batch if the service reports that it has ended, else a sentence on its state."""
        handed: BatchEntry = self.ledger.batches[name]
        try:
            batch = self._tried("checking the batch", lambda: self.service.get(handed.id))
        except RequestFailed as failure:
            if failure.status != 404:
                raise
            raise ServerError(
                f"the provider no longer has the batch {visible(handed.id, 80)} ({failure.message}). To request its "
                f"samples again, delete {self.ledger.path}."
            ) from failure
        if not batch.ended:
            counts = batch.request_counts
            done = f", {counts.completed} of {counts.total} answered" if counts and counts.total else ""
            failed = f", {counts.failed} failed" if counts and counts.failed else ""
            return f"batch {visible(batch.id, 80)} is {visible(batch.status, 40)}{done}{failed}"
        began = batch.created_at if batch.created_at is not None else time.time()
        ended = batch.ended_at if batch.ended_at is not None else time.time()
        errors = self.service.error_text(batch)
        words = f"batch {visible(batch.id, 80)} {visible(batch.status, 40)}{errors and f': {errors}'}"
        if batch.status == "failed" and not batch.output_file_id:
            # Recorded before the error, so that the next session requests the samples again.
            self.ledger.void(name, errors)
            raise ServerError(
                f"the provider accepted none of the requests: {words}. If too many tokens were queued, lower "
                f"`concurrency` to send fewer requests at a time."
            )
        return EndedBatch(name, self._results(batch), began, max(0.0, ended - began), words)

    def _begin(self, name: str, file_id: str) -> Batch:
        """Begin a batch with the uploaded file, and return the batch.

        An attempt without a reply may have begun the batch, so each later attempt first looks for the batch by its
        name.
        """
        tries = count()

        def begin() -> Batch:
            if next(tries) and (batch := self.service.find(name)) is not None:
                return batch
            return self.service.create(name, file_id, self.path, self.facts.window)

        return self._tried("creating the batch", begin)

    def _results(self, batch: Batch) -> Iterator[bytes]:
        """The results, replies first: if rejections came first, the run would stop as if all were rejected."""
        for file_id in (batch.output_file_id, batch.error_file_id):
            if file_id:
                yield from self.service.lines(file_id)

    def _tried(self, step: str, act: Callable[[], T]) -> T:
        """Call `act`, and retry it while its failure may be temporary and the patience lasts; return its result.

        step: what `act` does, for the message about each failure.
        """
        due, pause = time.monotonic() + self.patience, 1.0
        while True:
            try:
                return act()
            except RequestFailed as failure:
                wait = max(pause, failure.retry_after or 0.0)
                if not failure.retryable or time.monotonic() + wait > due:
                    raise
                self.on_event("batch_step_failed", kind=failure.kind, message=failure.message)
                self.on_status(f"{step} failed ({failure.message}); retrying in {wait:.0f} s")
                if self.sleep(wait):
                    raise
            pause = min(LONGEST_PAUSE_S, 2 * pause)


# ---- the lines of a batch's files


ID_CHARS = 32
"""Length of the digest that identifies a question in a request's id; providers allow 64 characters for the whole id."""


def ask_id(task: Task) -> str:
    """The id of a sample's request: the same in every session, with only harmless characters."""
    return f"{digest([task.benchmark, task.question_id])[:ID_CHARS]}-{task.sample_index}"


class BatchResult(NamedTuple):
    """The result of one request: a reply, or the reason that there is none."""

    ask: str
    outcome: Reply | RequestFailed


class _Response(msgspec.Struct, frozen=True):
    status_code: int | None = None
    request_id: str | None = None
    body: msgspec.Raw = msgspec.Raw(b"null")


class _ResultLine(msgspec.Struct, frozen=True):
    custom_id: str
    response: _Response | None = None
    error: Any = None


def read_result(
    line: bytes, api: API, *, started: float, seconds: float, max_body_bytes: int, secrets: Iterable[Secret] = ()
) -> BatchResult | None:
    """The result in a line; None if the line has any other form.

    api: the API of the batch's requests. started: Unix time when the batch began. seconds: the batch's duration; the
    times of individual tokens are unknown. secrets: keys that must not appear in any text of the result.
    max_body_bytes: maximum size of a reply's body.
    """
    try:
        result_line = msgspec.json.decode(line, type=_ResultLine)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    ask, response = result_line.custom_id, result_line.response
    if response is None or (response.body == b"null" and result_line.error):
        return BatchResult(ask, failure_of_event(result_line.error, secrets, "the batch's result"))
    body = bytes(response.body)
    if response.status_code not in (None, 200):
        return BatchResult(ask, failure_of_status(response.status_code or 0, body, secrets=secrets))
    parser = ReplyParser(api, started=0.0, started_utc=started, max_body_bytes=max_body_bytes, secrets=secrets)
    parser.take_headers({"request-id": response.request_id} if response.request_id else {})
    try:
        parser.feed(body, seconds)
        reply = parser.finish(seconds)
    except RequestFailed as failure:
        return BatchResult(ask, failure)
    timing = msgspec.structs.replace(reply.timing, first_token=None, last_token=None, events=0)
    return BatchResult(ask, msgspec.structs.replace(reply, timing=timing))


# ---- the file of what was handed in


_REMEDY = (
    "There is no way to tell which requests the provider received: restore an intact copy, or delete the file to "
    "request all missing samples again."
)


class BatchEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the file. In `BatchLedger.batches`: the planned batch, with its id once the provider has assigned one.

    name: our name for the batch. id: the provider's id. endpoint: the endpoint's base URL. asks: the ids of the batch's
    requests. why: why the batch is void.
    """

    event: Literal["planned", "sent", "void"]
    name: str
    id: str = ""
    endpoint: str = ""
    asks: list[str] = []
    why: str = ""
    schema: int = SCHEMA_VERSION


class BatchLedger:
    """The file `batches.jsonl`. Only the holder of the run's lock may use it, one thread at a time."""

    def __init__(self, folder: RunFolder) -> None:
        """Open the file. Raises `StoreError` if the file cannot be read, has a newer schema or has a damaged line.

        A damaged line is an error because its batch might be sent twice.
        """
        self.path = folder.batches
        self.batches: dict[str, BatchEntry] = {}
        """Batches that are not void, by our names, in the order in which they were planned."""
        # A torn tail comes from a process that died while writing, before it sent anything.
        for entry in read_appended(self.path, BatchEntry, _REMEDY, sealed=True):
            self._apply(entry)

    def planned(self, name: str, endpoint: str, asks: Collection[str]) -> None:
        """Record that a batch of these requests is about to be sent. Raises `StoreError`."""
        self._append(BatchEntry(event="planned", name=name, endpoint=endpoint, asks=list(asks)))

    def record_sent(self, name: str, id: str) -> None:
        """Record the provider's id for the batch. Raises `StoreError`."""
        self._append(BatchEntry(event="sent", name=name, id=id))

    def void(self, name: str, why: str) -> None:
        """Record that the batch never began or that it failed. Raises `StoreError`."""
        self._append(BatchEntry(event="void", name=name, why=why))

    def holding(self, asks: Collection[str]) -> dict[str, BatchEntry]:
        """For each request id in `asks`, the latest batch that contains it; ids in no batch are left out."""
        asked_ids = set(asks)
        # In order of the batches, so that a later batch replaces an earlier one with the same request.
        return {ask: batch for batch in self.batches.values() for ask in batch.asks if ask in asked_ids}

    def _append(self, entry: BatchEntry) -> None:
        append_line(self.path, line(entry, sealed=True))
        self._apply(entry)

    def _apply(self, entry: BatchEntry) -> None:
        """Update `batches` with a line of the file."""
        if entry.event == "planned":
            self.batches[entry.name] = entry
        elif entry.name in self.batches and entry.event == "sent":
            self.batches[entry.name] = msgspec.structs.replace(self.batches[entry.name], id=entry.id)
        else:
            self.batches.pop(entry.name, None)
