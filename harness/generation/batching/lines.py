"""The lines of a batch's files: a request of ours, and what came of it. Pure.

{"custom_id":"3f9c…-0","method":"POST","url":"/v1/chat/completions","body":{…}}
{"custom_id":"3f9c…-0","response":{"status_code":200,"request_id":"…","body":{…}},"error":null}
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from harness.client.protocol.failures import RequestFailed, failure_of_event, failure_of_status
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.client.wires.wire import Wire
from harness.core import codec
from harness.core.codec import digest
from harness.core.secret import Secret
from harness.runs.record import Task

ID_CHARS = 32
"""Characters of the digest that names a question in a request's id; providers take 64 for the whole id."""


def ask_id(task: Task) -> str:
    """The id of a sample's request: the same in every session, and inert."""
    return f"{digest([task.benchmark, task.question_id])[:ID_CHARS]}-{task.sample_index}"


def request_line(ask: str, url: str, body: bytes) -> bytes:
    """One request. body: JSON, already encoded."""
    return b'{"custom_id":%s,"method":"POST","url":%s,"body":%s}\n' % (codec.encode(ask), codec.encode(url), body)


class BatchResult(NamedTuple):
    """The result for one request: a reply, or the reason why there is none."""

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
    line: bytes, wire: Wire, *, started: float, seconds: float, max_body_bytes: int, secrets: Iterable[Secret] = ()
) -> BatchResult | None:
    """The result in a line; None for a line that has another form.

    wire: of the batch's requests. started: Unix time when the batch began. seconds: its duration. The times of single
    tokens are unknown. secrets: keys that no text of the result may show. max_body_bytes: largest body of a reply.
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
    parser = ReplyParser(wire, started=0.0, started_utc=started, max_body_bytes=max_body_bytes, secrets=secrets)
    parser.request_id = response.request_id
    try:
        parser.feed(body, seconds)
        reply = parser.finish(seconds)
    except RequestFailed as failure:
        return BatchResult(ask, failure)
    timing = msgspec.structs.replace(reply.timing, first_token=None, last_token=None, events=0)
    return BatchResult(ask, msgspec.structs.replace(reply, timing=timing))
