"""A provider's batch API: a file of requests is uploaded, and a file of results is downloaded hours later.

    upload (file → id) ──▶ create (batch) ──▶ look, until it has ended ──▶ lines (results, errors)

The protocol is OpenAI's (`/files`, `/batches`). All calls block: code on an event loop uses `asyncio.to_thread`.
Guarantees: every answer is bounded in bytes and seconds; the provider's words are made harmless before they are shown;
no request is sent twice, so the caller decides about retries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import httpx
import msgspec

from harness.client.address.endpoint import Endpoint, host_and_port, quote_safely, secrets_of
from harness.client.facts.page import http_client
from harness.client.protocol.failures import failure_of_status
from harness.client.protocol.reply import RequestFailed
from harness.core import codec
from harness.core.limits import MAX_ERROR_BODY_BYTES, MAX_RECORD_BYTES
from harness.core.secret import Secret

STEP_S = 60.0
"""Longest wait for a connection, and for the next bytes of an answer."""

MAX_PAGE_BYTES = 16 * 1024 * 1024
"""Longest answer that describes a batch or lists batches."""

MAX_PAGES = 200
"""Largest number of pages of the provider's list of batches that `find` reads.

Each page has a hundred batches, the latest first.
"""

FILE_WAIT_S = 600.0
"""Longest wait, in seconds, until the provider has checked an uploaded file."""

_FILE_LOOK_S = 2.0
"""Seconds between two questions whether an uploaded file has been checked."""

MARK = "harness_batch"
"""Key in a batch's metadata under which our name for the batch stands."""


class Batch(msgspec.Struct, frozen=True):
    """A batch as the provider describes it.

    created_at, ended_at: Unix times. total, completed, failed: numbers of requests. All of these are None if the
    provider does not state them. words: the provider's error messages, safe to print.
    """

    id: str
    status: str
    output_file_id: str | None = None
    error_file_id: str | None = None
    created_at: float | None = None
    ended_at: float | None = None
    total: int | None = None
    completed: int | None = None
    failed: int | None = None
    words: str = ""

    @property
    def ended(self) -> bool:
        """Whether the provider has stopped working on the batch, finished or not."""
        return self.status in ("completed", "failed", "expired", "cancelled")


class BatchService:
    """Calls the batch API of one endpoint. Every method raises `RequestFailed`."""

    def __init__(
        self,
        endpoint: Endpoint,
        ca_file: Path | None = None,
        *,
        secrets: Sequence[Secret] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """secrets: further texts that no message may show; the endpoint's own key is always hidden."""
        self.endpoint = endpoint
        self._secrets = (*secrets_of(endpoint), *secrets)
        self._ca_file = ca_file
        self._sleep = sleep

    def upload(self, name: str, file: IO[bytes]) -> str:
        """Upload a file of requests and wait until the provider has checked it; returns the file's id."""
        parts = {"file": (name, file, "application/jsonl")}
        stated = self._json("POST", "/files", data={"purpose": "batch"}, files=parts)
        file_id = _text(stated.get("id"))
        if not file_id:
            raise RequestFailed("malformed", "the provider's answer to the upload names no file id")
        due = time.monotonic() + FILE_WAIT_S
        while stated.get("status") == "pending" and time.monotonic() < due:
            self._sleep(_FILE_LOOK_S)
            # Quoted, so that an id with slashes cannot lead to another page.
            stated = self._json("GET", f"/files/{quote(file_id, safe='')}")
        return file_id

    def create(self, name: str, file_id: str, path: str, window: str) -> Batch:
        """Start a batch with the requests of an uploaded file.

        name: our name for the batch, for `find`. path: the API path of the requests. window: the time in which the
        provider shall answer, such as "24h". file_id: the service's name of the uploaded file.
        """
        fields = {"input_file_id": file_id, "endpoint": path, "completion_window": window, "metadata": {MARK: name}}
        return self._batch(self._json("POST", "/batches", json=fields))

    def look(self, batch_id: str) -> Batch:
        """The batch in its present state."""
        return self._batch(self._json("GET", f"/batches/{quote(batch_id, safe='')}"))

    def find(self, name: str) -> Batch | None:
        """The batch that was started under our name; None if the provider's list does not have it.

        For a caller that lost the answer to `create` and does not know whether the batch exists.
        """
        after: str | None = None
        for _ in range(MAX_PAGES):
            page = self._json("GET", "/batches", params={"limit": 100, **({"after": after} if after else {})})
            listed = [entry for entry in _list(page.get("data")) if isinstance(entry, dict)]
            for entry in listed:
                metadata = entry.get("metadata")
                if isinstance(metadata, dict) and metadata.get(MARK) == name:
                    return self._batch(entry)
            last = _text(listed[-1].get("id")) if listed else ""
            # The same last entry again would turn the pages for ever.
            if not page.get("has_more") or not last or last == after:
                return None
            after = last
        return None

    def lines(self, file_id: str) -> Iterator[bytes]:
        """The lines of a file of results, while it downloads. Lines above `MAX_RECORD_BYTES` are left out."""
        with self._response("GET", f"/files/{quote(file_id, safe='')}/content") as response:
            held: list[bytes] = []  # the pieces of the unfinished line; empty once it is too long
            n_held = 0  # the length of the unfinished line, also of one that is too long
            try:
                # Raw: a small compressed file can unpack to gigabytes.
                for piece in response.iter_raw():
                    *ends, rest = piece.split(b"\n")
                    for end in ends:
                        line, n_line = b"".join([*held, end]), n_held + len(end)
                        held, n_held = [], 0
                        if n_line <= MAX_RECORD_BYTES and line.strip():
                            yield line
                    n_held += len(rest)
                    if n_held > MAX_RECORD_BYTES:
                        held = []
                    elif rest:
                        held.append(rest)
            except httpx.HTTPError as error:
                raise self._broken(error) from error
            if n_held <= MAX_RECORD_BYTES and (line := b"".join(held)).strip():
                yield line

    def _batch(self, stated: dict[str, Any]) -> Batch:
        """The state of a batch, as the provider's answer states it. Raises `RequestFailed` if it describes no batch."""
        if not _text(stated.get("id")) or not _text(stated.get("status")):
            raise RequestFailed("malformed", "the provider's answer describes no batch")
        counts = stated.get("request_counts")
        counts = counts if isinstance(counts, dict) else {}
        ended = [stated.get(f"{state}_at") for state in ("completed", "failed", "expired", "cancelled")]
        errors = stated.get("errors")
        problems = [
            problem
            for problem in _list(errors.get("data") if isinstance(errors, dict) else None)
            if isinstance(problem, dict)
        ]
        words = "; ".join(f"{_text(problem.get('message'))} ({_text(problem.get('code'))})" for problem in problems[:3])
        return Batch(
            id=_text(stated.get("id")),
            status=_text(stated.get("status")),
            output_file_id=_text(stated.get("output_file_id")) or None,
            error_file_id=_text(stated.get("error_file_id")) or None,
            created_at=_number(stated.get("created_at")),
            ended_at=next((_number(time) for time in ended if _number(time) is not None), None),
            total=_count(counts.get("total")),
            completed=_count(counts.get("completed")),
            failed=_count(counts.get("failed")),
            words=quote_safely(words, self._secrets),
        )

    def _json(self, method: str, path: str, **how: Any) -> dict[str, Any]:
        """The JSON object that answers this request. Raises `RequestFailed`."""
        try:
            with self._response(method, path, **how) as response:
                body = bytearray()
                for piece in response.iter_raw():
                    body += piece
                    if len(body) > MAX_PAGE_BYTES:
                        raise RequestFailed("malformed", f"{path}: the answer exceeds {MAX_PAGE_BYTES} bytes")
        except httpx.HTTPError as error:
            raise self._broken(error) from error
        try:
            return codec.decode(bytes(body), dict[str, Any])
        except codec.DecodeError as error:
            words = quote_safely(bytes(body[:200]).decode("utf-8", "replace"), self._secrets)
            raise RequestFailed("malformed", f"{path}: the answer is no JSON object: {words}") from error

    def _response(self, method: str, path: str, **how: Any) -> _Open:
        return _Open(self, method, path, how)

    def _broken(self, error: httpx.HTTPError) -> RequestFailed:
        """The failure for an error of the connection."""
        kind = "timeout" if isinstance(error, httpx.TimeoutException) else "connect"
        words = quote_safely(str(error), self._secrets) or type(error).__name__
        return RequestFailed(kind, f"{host_and_port(self.endpoint.base_url)}: {words}")  # type: ignore[arg-type]


class _Open:
    """A context manager that sends a request and yields the response before its body is read.

    Raises `RequestFailed` for any status but 200.
    """

    def __init__(self, service: BatchService, method: str, path: str, how: dict[str, Any]) -> None:
        self._service = service
        self._request = (method, service.endpoint.over_http(service.endpoint.base_url + path))
        self._how = how

    def __enter__(self) -> httpx.Response:
        service = self._service
        try:
            self._client = http_client(service.endpoint, STEP_S, service._ca_file)
            self._stream = self._client.stream(*self._request, **self._how)
            response = self._stream.__enter__()
            if response.status_code == 200:
                return response
            body = bytearray()
            for piece in response.iter_raw():
                body += piece
                if len(body) > MAX_ERROR_BODY_BYTES:
                    break
            failure = failure_of_status(
                response.status_code,
                bytes(body),
                retry_after=response.headers.get("retry-after"),
                location=response.headers.get("location"),
                secrets=service._secrets,
            )
        except httpx.HTTPError as error:
            self._client.close()
            raise service._broken(error) from error
        except ValueError as error:  # a key that no header can carry
            raise RequestFailed("rejected", str(error)) from None
        # Python does not call `__exit__` when `__enter__` raises.
        self.__exit__(None, None, None)
        raise failure

    def __exit__(self, *caught: Any) -> None:
        self._stream.__exit__(*caught)
        self._client.close()


# Each of these returns the value if it is of the expected type and size, else an empty one.


def _text(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= 500 else ""


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value < 1e12 else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= 10**9 else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
