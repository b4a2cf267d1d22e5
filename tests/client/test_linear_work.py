"""Every function that touches a server's bytes takes time that grows with their number, not with its square.

The clock is the thread's own CPU time, the least of three tries; sixteen times the bytes may take five times what is
due, and quadratic work takes sixteen times it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from harness.client.address.endpoint import quote_safely, redact
from harness.client.apis.api import API
from harness.client.apis.chat import CHAT
from harness.client.apis.messages import MESSAGES
from harness.client.apis.responses import RESPONSES
from harness.client.protocol.failures import RequestFailed, failure_of_event, failure_of_status
from harness.client.protocol.sse import ReplyParser
from harness.core.secret import Secret
from harness.testing import Said
from reasoning_answers.host import lost_call
from tests.budget import thinned
from tests.client.work import grows_linearly

pytestmark = pytest.mark.slow

KEY = "sk-canary-0123456789-abcdefghij"
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'


def parse(body: bytes, size: int | None = None, api: API = CHAT) -> None:
    parser = ReplyParser(api, started=0.0, started_utc=0.0, max_body_bytes=1 << 30, secrets=(Secret(KEY),))
    size = size or len(body)
    try:
        for at in range(0, len(body), size):
            parser.feed(body[at : at + size], 1.0)
        parser.finish(2.0)
    except RequestFailed:
        pass


OPENINGS = (
    "<",
    "[",
    "<|",
    "<a",
    '{"name": "a", ',
    '"name":' + " " * 40,
    "p(",
    "```",
    "a_",
    "\n",
    " ",
    "} , ",
    '{"a": "b", ',
    '{"p": {',
    "functions.p",
    "to=p",
    "> p",
    "Action: p\n",
    "[p(",
    "a" * 99 + ".",
    "```\n<p>\n",
)
"""Beginnings of forms of calls."""


def lost(piece: str, n: int) -> bool:
    return bool(lost_call(piece * n, piece * n, "stop", ("p",), asks_program=False))


WORK: dict[str, tuple[int, Callable[[int], object]]] = {
    "blanks after api_key in an error": (1000, lambda n: redact("api_key:" + " " * n)),
    "blanks after api_key in an error body": (1000, lambda n: failure_of_status(500, b"api_key:" + b" " * n)),
    "many api_keys": (1000, lambda n: redact("api_key: ' " * n)),
    "bearer without a token": (1000, lambda n: redact("bearer " * n)),
    "slashes of addresses": (1000, lambda n: redact("://a" * n)),
    "beginnings of a key": (1000, lambda n: redact(KEY[:9] * n, (Secret(KEY),))),
    "data lines of one event": (2500, lambda n: parse(b"data:\n" * n + b"\n")),
    "data lines, read by read": (2500, lambda n: parse(b"data: 1\n" * n + b"\n", 64)),
    "a line without end": (20_000, lambda n: parse(b"data: " + b"x" * n, 64)),
    "comments": (5000, lambda n: parse(b": ping\n\n" * n)),
    "events without data": (5000, lambda n: parse(b"event: x\n\n" * n)),
    "blanks before a body": (50_000, lambda n: parse(b" " * n, 8)),
    "a body in JSON": (50_000, lambda n: parse(b'{"choices":[{"delta":{"content":"' + b"x" * n, 64)),
    "tokens": (2000, lambda n: parse(TOKEN * n)),
    "tokens of responses": (2000, lambda n: parse(b"".join(Said("x" * n).events("responses")), api=RESPONSES)),
    "tokens of messages": (2000, lambda n: parse(b"".join(Said("x" * n).events("messages")), api=MESSAGES)),
    "tokens, then a failure": (2000, lambda n: parse(TOKEN * n + b"data: {\n\n")),
    "an error of many words": (
        20_000,
        lambda n: failure_of_event({"error": {"message": "the model is " * n}}, (Secret(KEY),)),
    ),
    "an open tag": (20_000, lambda n: failure_of_status(502, b"<script " * n)),
    "a message": (50_000, lambda n: quote_safely("Bearer " * n, (Secret(KEY),))),
    **{f"lost calls, {piece}": (2000, partial(lost, piece)) for piece in OPENINGS},
}


@pytest.mark.parametrize("name", thinned(WORK))
def test_work_on_a_servers_bytes_is_linear(name: str) -> None:
    n, work = WORK[name]
    assert grows_linearly(work, n)


def test_quadratic_work_is_seen() -> None:
    assert not grows_linearly(lambda n: [sum(range(i)) for i in range(n)], 400)
