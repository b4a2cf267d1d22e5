"""A provider's batch API: a file of requests is uploaded, and a file of results is downloaded hours later.

    upload (file → id) ──▶ create (batch) ──▶ look, until it has ended ──▶ lines (results, errors)

The protocol is OpenAI's (`/files`, `/batches`), and the openai package speaks it. All calls block.
Guarantees: every answer is limited in bytes and seconds; the provider's texts are made harmless before they are shown;
no request is sent twice, so retries are the caller's decision.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import IO, Annotated, Any, TypeVar

import msgspec
import openai

from harness.client import openai_sdk
from harness.client.address.endpoint import Endpoint, quote_safely, secrets_of
from harness.client.protocol.failures import RequestFailed, failure_of_status
from harness.core import codec
from harness.core.records import MAX_RECORD_BYTES
from harness.core.sanitize import MAX_ERROR_BODY_BYTES
from harness.core.secret import Secret

T = TypeVar("T")

STEP_S = 60.0
"""Longest wait for a connection and for the next bytes of an answer, in seconds."""

MAX_PAGE_BYTES = 16 * 1024 * 1024
"""Longest answer, in bytes, that describes a batch or lists batches."""

MAX_PAGES = 200
"""Largest number of pages of the provider's list of batches that `find` reads.

Each page has a hundred batches, latest first.
"""

FILE_WAIT_S = 600.0
"""Longest wait, in seconds, until the provider has checked an uploaded file."""

_FILE_LOOK_S = 2.0
"""Seconds between two requests for whether an uploaded file has been checked."""

MARK = "harness_batch"
"""The metadata key for our name for a batch."""


Text = Annotated[str, msgspec.Meta(max_length=500)]
"""A text from the provider, of limited length."""


class _Counts(msgspec.Struct, frozen=True):
    total: int = 0
    completed: int = 0
    failed: int = 0


class _Problem(msgspec.Struct, frozen=True):
    message: str | None = None
    code: str | None = None


class _Problems(msgspec.Struct, frozen=True):
    data: list[_Problem] | None = None


class Batch(msgspec.Struct, frozen=True):
    """A batch as the provider describes it, with the fields of OpenAI's protocol; times are Unix times."""

    id: Text
    status: Text
    output_file_id: Text | None = None
    error_file_id: Text | None = None
    created_at: float | None = None
    completed_at: float | None = None
    failed_at: float | None = None
    expired_at: float | None = None
    cancelled_at: float | None = None
    request_counts: _Counts | None = None
    errors: _Problems | None = None

    @property
    def ended(self) -> bool:
        """Whether the provider has stopped working on the batch, finished or not."""
        return self.status in ("completed", "failed", "expired", "cancelled")

    @property
    def ended_at(self) -> float | None:
        """When the batch ended; None if it has not ended or the provider does not say."""
        times = (self.completed_at, self.failed_at, self.expired_at, self.cancelled_at)
        return next((time for time in times if time is not None), None)


class _Named(msgspec.Struct, frozen=True):
    """An entry of the provider's list of batches."""

    id: Text
    metadata: dict[str, Any] | None = None


class _Page(msgspec.Struct, frozen=True):
    data: list[_Named]
    has_more: bool = False


class _File(msgspec.Struct, frozen=True):
    id: Text
    status: str | None = None


class BatchService:
    """Calls the batch API of one endpoint. Every method raises `RequestFailed`."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        secrets: Sequence[Secret] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """secrets: additional texts that no message may show; the endpoint's own key is always hidden."""
        self.endpoint = endpoint
        self._secrets = (*secrets_of(endpoint), *secrets)
        self._sleep = sleep

    def upload(self, name: str, file: IO[bytes]) -> str:
        """Upload a file of requests, from its beginning, and wait until the provider has checked it; return its id."""
        file.seek(0)
        parts = (name, file, "application/jsonl")
        uploaded = self._ask(_File, lambda api: api.files.create(file=parts, purpose="batch"))
        file_id, due = uploaded.id, time.monotonic() + FILE_WAIT_S
        while uploaded.status == "pending" and time.monotonic() < due:
            self._sleep(_FILE_LOOK_S)
            uploaded = self._ask(_File, lambda api: api.files.retrieve(file_id))
        return file_id

    def create(self, name: str, file_id: str, path: str, window: str) -> Batch:
        """Start a batch with the requests of an uploaded file.

        name: our name for the batch, for `find`. path: the API path of the requests. window: the time within which the
        provider is to answer, such as "24h". file_id: the provider's id of the uploaded file.
        """
        fields: Any = {"input_file_id": file_id, "endpoint": path, "completion_window": window}
        return self._ask(Batch, lambda api: api.batches.create(**fields, metadata={MARK: name}))

    def get(self, batch_id: str) -> Batch:
        """The current state of the batch."""
        return self._ask(Batch, lambda api: api.batches.retrieve(batch_id))

    def find(self, name: str) -> Batch | None:
        """The batch that was started under our name; None if it is not in the provider's list.

        For a caller that lost the answer to `create` and does not know whether the batch exists.
        """
        after: dict[str, str] = {}
        for _ in range(MAX_PAGES):
            page = self._ask(_Page, lambda api, after=after: api.batches.list(limit=100, **after))  # type: ignore[misc]
            for entry in page.data:
                if entry.metadata and entry.metadata.get(MARK) == name:
                    return self.get(entry.id)
            last = page.data[-1].id if page.data else None
            # The same last entry again would make this loop endless.
            if not page.has_more or not last or after == {"after": last}:
                return None
            after = {"after": last}
        return None

    def error_text(self, batch: Batch) -> str:
        """The provider's error messages about a batch, safe to print."""
        problems = (batch.errors.data or [])[:3] if batch.errors else []
        words = "; ".join(f"{problem.message or ''} ({problem.code or ''})" for problem in problems)
        return quote_safely(words, self._secrets)

    def lines(self, file_id: str) -> Iterator[bytes]:
        """The lines of a file of results while it downloads, without lines longer than `MAX_RECORD_BYTES`.

        Raises `RequestFailed`.
        """
        held = bytearray()
        for piece in chain(self._pieces(lambda api: api.files.content(file_id)), [b"\n"]):
            first, *others = piece.split(b"\n")
            held += first
            for following in others:
                if len(held) <= MAX_RECORD_BYTES and held.strip():
                    yield bytes(held)
                held = bytearray(following)
            del held[MAX_RECORD_BYTES + 1 :]  # this line is too long already, whatever follows

    def _ask(self, type: type[T], call: Callable[[Any], Any]) -> T:
        """The JSON object that answers a call of the package. Raises `RequestFailed`, also for any other answer."""
        body = bytearray()
        for piece in self._pieces(call):
            body += piece
            if len(body) > MAX_PAGE_BYTES:
                raise RequestFailed("malformed", f"the response exceeds {MAX_PAGE_BYTES} bytes")
        try:
            return codec.decode(bytes(body), type)
        except codec.DecodeError as error:
            words = quote_safely(body.decode("utf-8", "replace"), self._secrets)
            raise RequestFailed("malformed", f"the response does not follow the batch API: {words}") from error

    def _pieces(self, call: Callable[[Any], Any]) -> Iterator[bytes]:
        """The body that answers a call of the package, piece by piece as it arrives. Raises `RequestFailed`."""
        try:
            with call(self._client.with_streaming_response) as response:
                yield from response.iter_bytes()
        except RequestFailed:
            raise
        except Exception as error:  # noqa: BLE001 - from whichever HTTP library the package uses
            raise openai_sdk.failure_of(error, self.endpoint, STEP_S, self._secrets) from None

    @cached_property
    def _client(self) -> openai.OpenAI:
        """The package's client, created for the first call; it keeps no connection open."""
        return openai_sdk.open_client(openai.OpenAI, openai.DefaultHttpxClient, self.endpoint, STEP_S, self._check)

    def _check(self, response: Any) -> None:
        """Raise `RequestFailed` for a response with an error status."""
        body = b""
        if openai_sdk.is_refusal(response):
            for piece in response.iter_raw():
                body += piece
                if len(body) >= MAX_ERROR_BODY_BYTES:
                    break
            raise failure_of_status(response.status_code, body, response.headers, self._secrets)
