"""A provider's batches: files of requests that are handed in, and files of results that are fetched hours later.

The protocol is OpenAI's (`/files`, `/batches`). Blocking: from a running loop use `asyncio.to_thread`. Guarantees:
bounded in bytes and seconds; foreign words are shown safely; nothing is sent twice by itself, so the caller decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import httpx
import msgspec

from harness.client.address.endpoint import Endpoint, host_and_port, secrets_of, shown_safely
from harness.client.facts.page import client_of
from harness.client.protocol.failures import failed_status
from harness.client.protocol.reply import RequestFailed
from harness.core import codec
from harness.core.limits import MAX_ERROR_BODY_BYTES, MAX_RECORD_BYTES
from harness.core.secret import Secret

STEP_S = 60.0
"""Seconds to connect and between two reads."""

MAX_PAGE_BYTES = 16 * 1024 * 1024
"""Longest description of a batch, or page of them."""

MAX_PAGES = 200
"""Pages of the list of batches that are gone through, a hundred batches each, the latest first."""

FILE_WAIT_S = 600.0
"""Longest time, in seconds, for which a file that was uploaded may be looked at by the provider before it is ready."""

_FILE_LOOK_S = 2.0

MARK = "harness_batch"
"""Key of a batch's metadata that holds our name for it."""


class Batch(msgspec.Struct, frozen=True):
    """A batch as the provider tells of it. Times are Unix times; counts are None where it does not say."""

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
        """Nothing more will be answered."""
        return self.status in ("completed", "failed", "expired", "cancelled")


class BatchService:
    """The batches of one endpoint. Every method raises `RequestFailed`."""

    def __init__(
        self,
        endpoint: Endpoint,
        ca_file: Path | None = None,
        *,
        secrets: Sequence[Secret] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """secrets: never shown, beside the endpoint's own."""
        self.endpoint = endpoint
        self._secrets = (*secrets_of(endpoint), *secrets)
        self._ca_file = ca_file
        self._sleep = sleep

    def upload(self, name: str, file: IO[bytes]) -> str:
        """The id of a file of requests, once the provider has taken it."""
        parts = {"file": (name, file, "application/jsonl")}
        stated = self._json("POST", "/files", data={"purpose": "batch"}, files=parts)
        file_id = _text(stated.get("id"))
        if not file_id:
            raise RequestFailed("malformed", "the provider names no id of the file that it was sent")
        due = time.monotonic() + FILE_WAIT_S
        while stated.get("status") == "pending" and time.monotonic() < due:
            self._sleep(_FILE_LOOK_S)
            stated = self._json("GET", f"/files/{quote(file_id, safe='')}")
        return file_id

    def create(self, name: str, file_id: str, path: str, window: str) -> Batch:
        """Begin a batch of the requests in a file. name: ours, by which `find` finds it."""
        fields = {"input_file_id": file_id, "endpoint": path, "completion_window": window, "metadata": {MARK: name}}
        return self._batch(self._json("POST", "/batches", json=fields))

    def look(self, batch_id: str) -> Batch:
        """How a batch stands."""
        return self._batch(self._json("GET", f"/batches/{quote(batch_id, safe='')}"))

    def find(self, name: str) -> Batch | None:
        """The batch that was begun under our name; None where the provider's list lacks it."""
        after: str | None = None
        for _ in range(MAX_PAGES):
            page = self._json("GET", "/batches", params={"limit": 100, **({"after": after} if after else {})})
            listed = [entry for entry in _list(page.get("data")) if isinstance(entry, dict)]
            for entry in listed:
                metadata = entry.get("metadata")
                if isinstance(metadata, dict) and metadata.get(MARK) == name:
                    return self._batch(entry)
            last = _text(listed[-1].get("id")) if listed else ""
            if not page.get("has_more") or not last or last == after:
                return None
            after = last
        return None

    def lines(self, file_id: str) -> Iterator[bytes]:
        """The lines of a file of results, as they come. A line over the bound is left out."""
        with self._response("GET", f"/files/{quote(file_id, safe='')}/content") as response:
            held: list[bytes] = []  # the line under way
            n_held = 0
            try:
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
            words=shown_safely(words, self._secrets),
        )

    def _json(self, method: str, path: str, **how: Any) -> dict[str, Any]:
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
            words = shown_safely(bytes(body[:200]).decode("utf-8", "replace"), self._secrets)
            raise RequestFailed("malformed", f"{path}: the answer is no JSON object: {words}") from error

    def _response(self, method: str, path: str, **how: Any) -> _Open:
        return _Open(self, method, path, how)

    def _broken(self, error: httpx.HTTPError) -> RequestFailed:
        kind = "timeout" if isinstance(error, httpx.TimeoutException) else "connect"
        words = shown_safely(str(error), self._secrets) or type(error).__name__
        return RequestFailed(kind, f"{host_and_port(self.endpoint.base_url)}: {words}")  # type: ignore[arg-type]


class _Open:
    """A response with status 200, its body still to be read; a context manager."""

    def __init__(self, service: BatchService, method: str, path: str, how: dict[str, Any]) -> None:
        self._service = service
        self._request = (method, service.endpoint.over_http(service.endpoint.base_url + path))
        self._how = how

    def __enter__(self) -> httpx.Response:
        service = self._service
        try:
            self._client = client_of(service.endpoint, STEP_S, service._ca_file)
            self._stream = self._client.stream(*self._request, **self._how)
            response = self._stream.__enter__()
            if response.status_code == 200:
                return response
            body = bytearray()
            for piece in response.iter_raw():
                body += piece
                if len(body) > MAX_ERROR_BODY_BYTES:
                    break
            failure = failed_status(
                response.status_code,
                bytes(body),
                retry_after=response.headers.get("retry-after"),
                location=response.headers.get("location"),
                secrets=service._secrets,
            )
        except httpx.HTTPError as error:
            self._client.close()
            raise service._broken(error) from error
        self.__exit__(None, None, None)
        raise failure

    def __exit__(self, *caught: Any) -> None:
        self._stream.__exit__(*caught)
        self._client.close()


def _text(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= 500 else ""


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value < 1e12 else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= 10**9 else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
