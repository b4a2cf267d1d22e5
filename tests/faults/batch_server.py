"""A provider that speaks the batch protocol (`/v1/files`, `/v1/batches`), scripted by the test; for `FakeServer`.

provider = BatchProvider()
with FakeServer(provider.answer) as server:
    ...  # provider.batches, provider.asked()
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from harness.testing import CLOSE, Request, Step, http

Line = dict[str, Any]


def answered(line: Line, text: str | None = None, **choice: Any) -> bytes:
    """The result of a request that was answered."""
    body = line["body"]
    reply_text = f"seed {body.get('seed')}" if text is None else text
    message = {"role": "assistant", "content": reply_text}
    reply = {
        "id": f"chatcmpl-{line['custom_id']}",
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 7},
    }
    response = {"status_code": 200, "request_id": "r", "body": reply}
    return encoded({"id": "b", "custom_id": line["custom_id"], "response": response, "error": None})


def refused(line: Line, status: int, message: str) -> bytes:
    """The result of a request that met an HTTP error."""
    response = {"status_code": status, "request_id": "r", "body": {"error": {"message": message}}}
    return encoded({"id": "b", "custom_id": line["custom_id"], "response": response, "error": None})


def expired(line: Line) -> bytes:
    """The result of a request for which the window was too short."""
    error = {"code": "batch_expired", "message": "This request could not be executed before the window expired."}
    return encoded({"id": "b", "custom_id": line["custom_id"], "response": None, "error": error})


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@dataclass
class Outcome:
    """How a batch ends: its status, the lines of its two files, what is wrong with it as a whole."""

    status: str = "completed"
    output: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    words: str = ""


def all_answered(lines: list[Line], _number: int) -> Outcome:
    return Outcome(output=[answered(line) for line in lines])


class BatchProvider:
    """See the module. outcome: of a batch, from its requests and its number, from 1. looks: at a batch before it has
    ended. pending: looks at a file before it is ready. touched: told of each request before and after it took effect;
    true before it = it never does.
    """

    def __init__(
        self,
        outcome: Callable[[list[Line], int], Outcome] = all_answered,
        *,
        looks: int = 1,
        pending: int = 0,
        touched: Callable[[Request, bool], bool] = lambda request, after: False,
        instead: Callable[[Request], bytes | None] = lambda request: None,
    ) -> None:
        self.outcome = outcome
        self.looks = looks
        self.pending = pending
        self.touched = touched
        self.instead = instead
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self._looked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Iterator[Step]:
        if (fault := self.instead(request)) is not None:
            yield fault
            yield CLOSE
            return
        if self.touched(request, False):
            yield CLOSE
            return
        with self._lock:
            reply = self._reply(request)
        self.touched(request, True)
        yield reply

    def asked(self) -> list[Line]:
        """Every request of every batch that was begun."""
        return [line for batch in self.batches.values() for line in self._lines(batch["input_file_id"])]

    def _lines(self, file_id: str) -> list[Line]:
        return [json.loads(line) for line in self.files[file_id].splitlines()]

    def _reply(self, request: Request) -> bytes:
        parts = urlsplit(request.path)
        where = parts.path.removeprefix("/openai").removeprefix("/v1").strip("/").split("/")
        match request.method, where:
            case "GET", ["models"]:
                return http(200, {"object": "list", "data": [{"id": name} for name in ("m", "other")]})
            case "POST", ["files"]:
                return http(200, self._file(self._upload(request)))
            case "GET", ["files", file_id]:
                return http(200, self._file(file_id))
            case "POST", ["batches"]:
                return http(200, self._begin(request.json))
            case "GET", ["batches"]:
                return http(200, self._list(parse_qs(parts.query)))
            case "GET", ["batches", batch_id] if batch_id in self.batches:
                return http(200, self._look(batch_id))
            case "GET", ["files", file_id, "content"] if file_id in self.files:
                return http(200, self.files[file_id])
        return http(404, {"error": {"message": f"no such thing: {request.path}"}})

    def _upload(self, request: Request) -> str:
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        parts = request.body.split(b"--" + boundary)
        head, _, content = next(part for part in parts if b'name="file"' in part).partition(b"\r\n\r\n")
        assert any(b'name="purpose"\r\n\r\nbatch\r\n' in part for part in parts), head
        file_id = f"file-{len(self.files)}"
        self.files[file_id] = content.removesuffix(b"\r\n")
        return file_id

    def _file(self, file_id: str) -> dict[str, Any]:
        self._looked[file_id] += 1
        return {"id": file_id, "status": "pending" if self._looked[file_id] <= self.pending else "processed"}

    def _begin(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["completion_window"] == "24h"
        batch_id = f"batch_{len(self.batches)}"
        lines = self._lines(body["input_file_id"])
        assert len({line["custom_id"] for line in lines}) == len(lines), "ids within a batch are unique"
        assert all(line["url"] == body["endpoint"] and line["method"] == "POST" for line in lines)
        counts = {"total": len(lines), "completed": 0, "failed": 0}
        batch = {**body, "id": batch_id, "object": "batch", "status": "validating", "created_at": 1_700_000_000}
        self.batches[batch_id] = {**batch, "request_counts": counts, "output_file_id": None, "error_file_id": None}
        return self.batches[batch_id]

    def _list(self, query: dict[str, list[str]]) -> dict[str, Any]:
        """Two a page, the latest first."""
        newest = [*reversed(self.batches.values())]
        after = query.get("after", [""])[0]
        begin = 1 + next((index for index, batch in enumerate(newest) if batch["id"] == after), -1)
        return {"object": "list", "data": newest[begin : begin + 2], "has_more": begin + 2 < len(newest)}

    def _look(self, batch_id: str) -> dict[str, Any]:
        batch = self.batches[batch_id]
        self._looked[batch_id] += 1
        if self._looked[batch_id] <= self.looks or batch["status"] == "done":
            return {**batch, "status": "in_progress"}
        if "completed_at" not in batch:
            number = 1 + [*self.batches].index(batch_id)
            ended = self.outcome(self._lines(batch["input_file_id"]), number)
            batch |= {"status": ended.status, "completed_at": 1_700_000_060}
            for name, lines in (("output_file_id", ended.output), ("error_file_id", ended.errors)):
                if lines:
                    batch[name] = f"file-{len(self.files)}"
                    self.files[batch[name]] = b"\n".join(lines) + b"\n"
            if ended.words:
                batch["errors"] = {"data": [{"code": "invalid", "message": ended.words}]}
        return batch
