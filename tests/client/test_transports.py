"""Every transport meets every fault with a reply or a typed failure, on real sockets.

For: harness.client.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import json
import socket
import ssl
import tempfile
import threading
import tracemalloc
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trustme

from harness.client import interface
from harness.client import transport as http_transport
from harness.client.address.endpoint import Endpoint
from harness.client.apis.chat import CHAT
from harness.client.interface import Arriving, Deadlines, Post, Transport
from harness.client.loop import new_event_loop
from harness.client.openai_sdk import OpenaiTransport
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.transport import Transport as HttpTransport
from harness.client.transport import open_transport
from harness.testing import (
    CLOSE,
    DONE,
    END,
    HEAD,
    RESET,
    STALL,
    Answer,
    FakeServer,
    Pause,
    Request,
    Step,
    chunk,
    completion,
    delta,
    event,
    event_stream,
    http,
)
from server_launchers.machine import ports
from tests.budget import share_of
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

KEY = "sk-canary-0123456789"
BODY = json.dumps({"model": "test-model", "messages": [], "stream": True}).encode()
PATIENT = Deadlines(connect=PATIENCE_SECONDS, first_token=PATIENCE_SECONDS, idle=PATIENCE_SECONDS)
NO_TOKEN, NO_MORE = replace(PATIENT, first_token=0.2), replace(PATIENT, idle=0.2)
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Maker:
    """A transport and the loop to run it on."""

    transport: Callable[[], Transport]
    loop: Callable[[], asyncio.AbstractEventLoop] = new_event_loop


MAKERS = {
    "http": Maker(HttpTransport),
    "http on asyncio's loop": Maker(HttpTransport, asyncio.new_event_loop),
    "openai": Maker(OpenaiTransport),
}

Outcome = Reply | RequestFailed


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for a transport to look at its deadlines."""
    monkeypatch.setattr(http_transport, "CHECK_S", 0.02)
    monkeypatch.setattr(interface, "DRAIN_S", 0.1)


@pytest.fixture(params=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Maker:
    return MAKERS[request.param]


@asynccontextmanager
async def opened(make: Maker) -> AsyncIterator[Transport]:
    transport = make.transport()
    try:
        yield transport
    finally:
        await transport.close()


async def outcome_of(
    transport: Transport, url: str, deadlines: Deadlines = PATIENT, body: bytes = BODY, arriving: Arriving | None = None
) -> Outcome:
    endpoint = Endpoint.parse(url, KEY)
    try:
        return await transport.complete(Post(endpoint, CHAT, body, deadlines, MAX_BYTES, arriving or Arriving()))
    except RequestFailed as failure:
        return failure


def ask(make: Maker, answer: Answer, deadlines: Deadlines = PATIENT) -> Outcome:
    """One request to a server that answers so."""
    with FakeServer(answer) as server:
        outcome = asked_at(make, server.base_url, deadlines=deadlines)
        assert len(server.requests) <= 1, "no transport asks again by itself"
        return outcome


def asked_at(make: Maker, url: str, **options: Any) -> Outcome:
    async def main() -> Outcome:
        async with opened(make) as transport:
            return await outcome_of(transport, url, **options)

    return run(make, main())  # type: ignore[no-any-return]


def run(make: Maker, main: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(main, PATIENCE_SECONDS)

    with asyncio.Runner(loop_factory=make.loop) as runner:
        return runner.run(bounded())


def steps(*given: Step) -> Answer:
    return lambda _: given


def failed(outcome: Outcome) -> RequestFailed:
    assert isinstance(outcome, RequestFailed), outcome
    assert KEY not in outcome.message
    return outcome


def replied(outcome: Outcome) -> Reply:
    assert isinstance(outcome, Reply), outcome
    return outcome


def test_an_addresss_query_is_sent_each_time_and_a_key_in_it_is_hidden(make: Maker) -> None:
    def answer(request: Request) -> Iterable[Step]:
        asked.append(request.path)
        return [http(400, {"error": {"message": f"you sent {request.path}"}})]

    asked: list[str] = []
    with FakeServer(answer) as server:
        failure = failed(asked_at(make, f"{server.base_url}?api-version=2024&key={KEY}"))
    assert "api-version=2024&key=[hidden]" in failure.message
    assert asked == [f"/v1/chat/completions?api-version=2024&key={KEY}"]


def test_a_reply_comes_whole_with_its_facts(make: Maker) -> None:
    with FakeServer(lambda _: completion("forty-two")) as server:
        reply = replied(asked_at(make, server.base_url))
        assert (reply.text, reply.finish_reason, reply.usage.completion_tokens) == ("forty-two", "stop", 3)
        assert reply.timing.first_token is not None
        assert 0 < reply.timing.first_token <= (reply.timing.last_token or 0) <= reply.timing.total
        assert reply.timing.events == len("forty-two")
        (request,) = server.requests
        assert request.path == "/v1/chat/completions"
        assert request.json["model"] == "test-model"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["accept-encoding"] == "identity"


@pytest.fixture
def socket_path() -> Iterator[str]:
    """A path short enough for a unix socket, wherever temporary folders are."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield f"{folder}/Server.sock"


def test_a_unix_socket_is_an_endpoint_like_another(socket_path: str) -> None:
    with FakeServer(lambda _: completion("forty-two"), unix=socket_path) as server:

        async def main() -> None:
            for url in (server.base_url, f"http+unix://{quote(socket_path, safe='')}/v1"):
                async with opened(Maker(open_transport)) as transport:
                    for _ in range(2):
                        assert replied(await outcome_of(transport, url)).text == "forty-two"

        run(Maker(open_transport), main())
        assert server.connections == 2
        assert {request.path for request in server.requests} == {"/v1/chat/completions"}


# -- connecting ------------------------------------------------------------------------------------------------------


def test_an_address_where_nobody_answers_is_named(make: Maker, socket_path: str) -> None:
    for url, shown in (
        (f"http://127.0.0.1:{(port := ports.free_ports('127.0.0.1', None, 1)[0])}", f"127.0.0.1:{port}"),
        ("http://no-such-host.invalid:8000", "no-such-host.invalid:8000"),
        (f"unix:{socket_path}", socket_path),
    ):
        failure = failed(asked_at(make, url))
        if url.startswith("unix:") and make is MAKERS["openai"]:
            assert (failure.kind, "use `transport=http`" in failure.message) == ("refused", True)
        else:
            assert failure.kind == "connect"
        assert shown in failure.message


def test_loopback_bypasses_proxies_and_uses_open_addresses(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{ports.free_ports('127.0.0.1', None, 1)[0]}")
    with FakeServer(lambda _: completion()) as server:
        assert replied(asked_at(make, f"http://localhost:{server.port}/v1")).text == "42"


def test_connections_are_reused_and_a_closed_one_is_replaced(make: Maker) -> None:
    """The third request meets a server that hangs up on it: a kept connection's end says nothing about the server."""

    def answer(request: Request) -> Iterable[Step]:
        return [CLOSE] if hangs_up and request.number == 3 else completion()

    async def main(url: str) -> None:
        async with opened(make) as transport:
            for _ in range(5):
                replied(await outcome_of(transport, url))

    for hangs_up in (False, True) if make is not MAKERS["openai"] else (False,):
        with FakeServer(answer) as server:
            run(make, main(server.base_url))
            assert len(server.requests) == 5 + hangs_up
            # The openai package uses each connection once.
            assert server.connections == (5 if make is MAKERS["openai"] else 1 + hangs_up)


@pytest.mark.parametrize("lives", [True, False])
def test_connections_open_a_few_at_a_time_and_none_fails(lives: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with a short listen queue must not lose connections to 10,000 requests that begin at once."""

    class Slow(HttpTransport):
        async def _connect_arguments(self, host: str, port: int) -> dict[str, Any]:
            opening.add(asyncio.current_task())
            largest.append(len(opening))
            try:
                await asyncio.sleep(0.25 if lives else 3600)
                return await super()._connect_arguments(host, port)
            finally:
                opening.remove(asyncio.current_task())

    monkeypatch.setattr(http_transport, "MAX_OPENING", 4)
    opening: set[object] = set()
    largest: list[int] = []
    deadlines = Deadlines(connect=3.0 if lives else 0.1)

    async def main(url: str) -> list[Outcome]:
        async with opened(Maker(Slow)) as transport:
            return await asyncio.gather(*(outcome_of(transport, url, deadlines) for _ in range(60)))

    with FakeServer(lambda _: completion()) as server:
        outcomes = run(MAKERS["http"], main(server.base_url))
    assert max(largest) == 4
    for outcome in outcomes:
        if lives:
            assert replied(outcome).text == "42"
        else:  # nothing was sent, so nothing can have cost anything
            failure = failed(outcome)
            assert (failure.kind, failure.sent, failure.free) == ("connect", False, True)


def test_a_redirect_is_not_followed_and_named(make: Maker) -> None:
    with FakeServer(lambda _: completion()) as second_server:
        target = f"{second_server.base_url}/chat/completions"
        failure = failed(ask(make, steps(http(307, location=target))))
        assert failure.kind == "refused"
        assert target in failure.message
        assert second_server.requests == []


# -- one answer, one outcome -----------------------------------------------------------------------------------------


def repeated(begin: bytes, again: bytes, pause: float = 0.01) -> Answer:
    """`begin`, and with it `again` without end."""

    def answer(_: Request) -> Iterable[Step]:
        yield begin + again
        while True:
            yield Pause(pause)
            yield again

    return answer


BOMB = gzip.compress(b"0" * 50_000_000)
ENDLESS_ERROR = b"HTTP/1.1 500 X\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
LONG_PROMPT = b'{"error": {"message": "exceeds the available context size"}}'
SPEAKS_OF_A_DEATH = event({"error": {"message": "EngineCore died", "type": "InternalServerError", "code": 500}})
WHOLE = {"choices": [{"index": 0, "message": {"content": "42"}, "finish_reason": "length"}]}
FOUR = chunk(delta("4"))
ENDED = HEAD + chunk(delta("42", finish="stop"))

FAILURES: dict[str, tuple[Answer, str, str, Deadlines]] = {
    "closed before a reply": (steps(CLOSE), "connect", "", PATIENT),
    "reset before a reply": (steps(RESET), "connect", "", PATIENT),
    "a bad request": (steps(http(400, {"error": {"message": "no\x1b[31m"}})), "rejected", "no", PATIENT),
    "a key that it repeats": (steps(http(401, {"error": f"the key {KEY} is wrong"})), "refused", "wrong", PATIENT),
    "too many requests": (steps(http(429, {}, retry_after="7")), "rate_limited", "", PATIENT),
    "out of order for days": (steps(http(503, {}, retry_after="999999")), "rate_limited", "retry after", PATIENT),
    "a compressed refusal": (
        steps(http(400, gzip.compress(LONG_PROMPT), content_encoding="gzip")), "too_long", "context", PATIENT,
    ),
    "a refusal called a stream": (
        steps(http(400, LONG_PROMPT, content_type="text/event-stream")), "too_long", "context", PATIENT,
    ),
    "a refusal that unpacks to much": (steps(http(500, BOMB, content_encoding="gzip")), "server", "", PATIENT),
    "a refusal without end": (repeated(ENDLESS_ERROR, chunk(b"no " * 100_000), 0), "server", "no", PATIENT),
    "a compressed reply that unpacks to much": (
        steps(http(200, BOMB, content_encoding="gzip", content_type="text/event-stream")), "malformed", "", PATIENT,
    ),
    "no finish before the end": (steps(UNTIL_CLOSED, delta("42"), CLOSE), "cut", "", PATIENT),
    "an error after tokens": (lambda _: event_stream(delta("4"), SPEAKS_OF_A_DEATH), "server", "EngineCore", PATIENT),
    "bad framing": (steps(HEAD, FOUR, b"zz\r\nwhat\r\n", CLOSE), "cut", "framing", PATIENT),
    "no HTTP": (steps(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", CLOSE), "malformed", "", PATIENT),
    "tokens without end": (repeated(HEAD, chunk(delta("again ") * 50), 0), "runaway", "", PATIENT),
    "no head in time": (steps(STALL), "timeout", "0.2 s", NO_TOKEN),
    "no token in time": (steps(HEAD, chunk(delta(role="assistant")), STALL), "timeout", "0.2 s", NO_TOKEN),
    "a stall after tokens": (steps(HEAD, FOUR, STALL), "timeout", "0.2 s", NO_MORE),
    "comments, no tokens": (repeated(HEAD + FOUR, chunk(b": ping\n\n")), "timeout", "0.2 s", NO_MORE),
    "empty tokens": (repeated(HEAD + FOUR, chunk(delta())), "timeout", "0.2 s", NO_MORE),
    "a chunk of single bytes": (
        repeated(HEAD + FOUR + f"{10**5:x}\r\n".encode(), b" "), "timeout", "0.2 s", NO_MORE,
    ),
    "[DONE] without a finish, then more": (
        repeated(HEAD + chunk(delta("42") + DONE), chunk(delta("later") * 200)), "cut", "", PATIENT,
    ),
}  # fmt: skip
"""What the server answers; the kind of failure; words of the message; the deadlines."""


@pytest.mark.timeout(PATIENCE_SECONDS)
@pytest.mark.parametrize("name", FAILURES)
def test_each_answer_that_is_no_reply_has_its_kind(make: Maker, name: str) -> None:
    answer, kind, words, deadlines = FAILURES[name]
    if "unpacks" in name:
        tracemalloc.start()
    try:
        failure = failed(ask(make, answer, deadlines))
        assert tracemalloc.get_traced_memory()[1] < 25_000_000
    finally:
        tracemalloc.stop()  # else a failure is told twice: here, and as what this file leaves behind
    if make is MAKERS["openai"]:  # whose words for it are its own
        kind, words = {"no HTTP": "connect"}.get(name, kind), "" if name == "bad framing" else words
    assert (failure.kind, words in failure.message, failure.message.isprintable()) == (kind, True, True), failure
    assert len(failure.message) < 2000
    assert failure.retry_after == {"too many requests": 7, "out of order for days": 999_999}.get(name)


SIGNS_OF_LIFE = {
    "a comment": b": PROCESSING\n\n",
    "a blank line": b"\n",
    "a ping": b"event: ping\n" + event({"type": "ping"}),
    "an empty object": event({}),
    "no choice": event({"choices": []}),
    "an empty delta": delta(),
    "null": delta(content=None, reasoning_content=None),
    "a role again": delta("", role="assistant"),
    "a piece of a line": b"data: ",
}


@pytest.mark.parametrize("sign", SIGNS_OF_LIFE)
@pytest.mark.parametrize("before", [b"", delta("4")])
def test_a_live_server_without_tokens_is_told_from_a_silent_one(before: bytes, sign: str) -> None:
    for quiet, lives in ((0.4, True), (2.9, False)):
        parser = Post(Endpoint.parse("h"), CHAT, b"", PATIENT, MAX_BYTES).parser(())
        parser.feed(before, parser.started)
        for n in range(6):
            parser.feed(
                SIGNS_OF_LIFE[sign] if n == 0 or not sign.startswith("a piece") else b" ", parser.started + n / 10
            )
        now = parser.started + 0.5 + quiet
        with pytest.raises(RequestFailed, match=r"^no token (within 3 s of the request|for 3 s)") as failed:
            Deadlines(first_token=3.0, idle=3.0).end_late(parser, now)
        named = "the server is alive: it sent bytes 0.4 s ago; raise `timeout` (--timeout)"
        assert (named in failed.value.message, "is alive" in failed.value.message) == (lives, lives)


REPLIES: dict[str, tuple[Answer, Deadlines, tuple[str, ...]]] = {
    "one JSON value": (steps(http(200, WHOLE)), PATIENT, ()),
    "ended by its connection": (steps(UNTIL_CLOSED, delta("42", finish="stop"), CLOSE), PATIENT, ("no [DONE]",)),
    "HTTP/1.0": (steps(b"HTTP/1.0 200 OK\r\n\r\n", delta("42", finish="stop"), DONE, CLOSE), PATIENT, ()),
    "a stall after the finish": (
        steps(ENDED, STALL),
        NO_MORE,
        ("cut after the finish reason: the response body never ended", "no [DONE]"),
    ),
    "a stall after [DONE]": (steps(ENDED + chunk(DONE), STALL), PATIENT, ()),
    "comments after [DONE]": (repeated(ENDED + chunk(DONE), chunk(b": ping\n\n")), PATIENT, ("bytes after [DONE]",)),
    "[DONE] again and again": (repeated(ENDED + chunk(DONE), chunk(DONE)), PATIENT, ("bytes after [DONE]",)),
}
"""What the server answers; the deadlines; the notes of the reply, which says 42."""


@pytest.mark.parametrize("name", REPLIES)
def test_each_answer_that_is_a_reply_is_read(make: Maker, name: str) -> None:
    answer, deadlines, notes = REPLIES[name]
    reply = replied(ask(make, answer, deadlines))
    assert (reply.text, reply.notes) == ("42", notes)


EVENTS = delta("4∑") + delta("2", finish="stop") + DONE
TRANSCRIPTS = {
    "chunked": b"".join(event_stream(delta("4∑"), delta("2", finish="stop"))),
    "of a length": http(200, EVENTS, content_type="text/event-stream"),
    "until the end": UNTIL_CLOSED + EVENTS,
}
WITHOUT_END = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
"""Of a server that ends its connections without a `close_notify`, so that nothing tells their end from a cut."""
trustme.CA().issue_cert("127.0.0.1").configure_cert(WITHOUT_END)


@pytest.mark.parametrize(
    ("framing", "act", "tls"),
    [
        ("chunked", CLOSE, None),
        ("chunked", RESET, None),
        ("of a length", CLOSE, None),
        ("until the end", CLOSE, None),
        ("until the end", RESET, None),
        ("until the end", CLOSE, WITHOUT_END),
        ("of a length", CLOSE, WITHOUT_END),
    ],
)
def test_a_transcript_cut_at_every_byte_is_a_reply_or_a_transient_failure(
    make: Maker, framing: str, act: Step, tls: ssl.SSLContext | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a reply says is whole once its finish reason has come, whatever tells the end of its body."""
    if tls is not None:
        monkeypatch.setattr(HttpTransport, "_tls", property(lambda _: ssl._create_unverified_context()))
        tls = None if make is MAKERS["openai"] else tls  # which takes no such context
    transcript = TRANSCRIPTS[framing]
    finished_at = transcript.index(b'"stop"}]}') + len(b'"stop"}]}')

    def answer(request: Request) -> Iterable[Step]:
        yield transcript[: request.json["messages"]]
        # A reset throws away what the client has not read yet.
        yield Pause(0.02 if act is RESET else 0)
        yield act

    cuts = share_of(range(0, len(transcript) - 1, 1 if act is CLOSE and tls is None else 7))

    async def main(url: str) -> list[Outcome]:
        async with opened(make) as transport:
            bodies = [json.dumps({"model": "m", "messages": at, "stream": True}).encode() for at in cuts]
            return [
                outcome
                for i in range(0, len(bodies), 50)
                for outcome in await asyncio.gather(*(outcome_of(transport, url, body=b) for b in bodies[i : i + 50]))
            ]

    with FakeServer(answer, tls=tls) as server:
        outcomes = run(make, main(server.base_url))
    for at, outcome in zip(cuts, outcomes, strict=True):
        if at >= finished_at:
            assert replied(outcome).text == "4∑2", at
        else:
            failure = failed(outcome)
            assert failure.kind in ("connect", "cut", "malformed"), (at, failure)
            assert failure.retryable, at


# -- deadlines -------------------------------------------------------------------------------------------------------


def test_tokens_extend_the_idle_deadline(make: Maker) -> None:
    def answer(_: Request) -> Iterable[Step]:
        yield HEAD
        for _n in range(6):
            yield chunk(delta("x"))
            yield Pause(0.4)
        yield chunk(delta(finish="stop") + DONE) + END

    assert replied(ask(make, answer, replace(PATIENT, idle=2.0))).text == "x" * 6


def test_cancelling_closes_the_connection(make: Maker) -> None:
    with FakeServer(steps(HEAD, chunk(delta("x")), STALL)) as server:

        async def main() -> None:
            async with opened(make) as transport:
                task = asyncio.create_task(outcome_of(transport, server.base_url))
                await asyncio.to_thread(server.wait_for, lambda: bool(server.requests))
                await asyncio.sleep(0.02)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await asyncio.to_thread(server.wait_for, lambda: server.aborted == 1)

        run(make, main())


@pytest.mark.parametrize("through_a_tunnel", [False, True])
def test_cancelling_while_connecting_leaves_none_open(through_a_tunnel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open connection without an owner keeps uvloop's loop from closing, and so the run from ending."""
    made: list[http_transport.Connection] = []

    class Cancelled(HttpTransport):
        async def _connect(self, server: http_transport.Server) -> http_transport.Connection:
            made.append(await super()._connect(server))
            asked.cancel()  # in the very turn of the loop in which the connection is made
            return made[0]

    async def main() -> None:
        nonlocal asked
        asked = asyncio.create_task(outcome_of(Cancelled(), "https://h.example" if through_a_tunnel else url))
        await asyncio.to_thread(server.wait_for, lambda: bool(made or server.requests))
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert all(connection.transport.is_closing() for connection in made)
        # The loop may have sent the request before the cancellation arrived.
        assert await asyncio.to_thread(server.wait_for, lambda: server.aborted == len(server.requests))

    asked: asyncio.Task[Outcome]
    with FakeServer(steps(STALL)) as server:
        url = server.base_url
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.port}")
        run(MAKERS["http"], main())


def test_a_connection_opened_while_the_client_closes_is_closed() -> None:
    """It would be kept for a next request, which never comes."""
    made: list[http_transport.Connection] = []

    class Closing(HttpTransport):
        async def _connect(self, server: http_transport.Server) -> http_transport.Connection:
            made.append(await super()._connect(server))
            await self.close()
            return made[0]

    with FakeServer(lambda _: completion()) as server:
        failure = failed(run(MAKERS["http"], outcome_of(Closing(), server.base_url)))
        assert (failure.kind, failure.sent, failure.message) == ("connect", False, "the client is closed")
    assert [connection.transport.is_closing() for connection in made] == [True]
    assert not server.requests


# -- long streams and prompts ----------------------------------------------------------------------------------------


def test_a_prompt_larger_than_all_socket_buffers_is_sent_whole() -> None:
    with FakeServer(lambda request: completion(str(len(request.body)))) as server:
        body = json.dumps({"model": "m", "messages": "x" * 20_000_000, "stream": True}).encode()
        assert replied(asked_at(MAKERS["http"], server.base_url, body=body)).text == str(len(body))


def test_an_early_refusal_of_a_large_prompt_is_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            connection = listener.accept()[0]
            connection.recv(1000)
            connection.sendall(b'HTTP/1.1 413 X\r\nContent-Length: 19\r\n\r\n{"error":"too big"}')
            read.wait(PATIENCE_SECONDS)
            connection.close()

        read, refusing = threading.Event(), threading.Thread(target=refuse)
        refusing.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        failure = failed(asked_at(MAKERS["http"], url, body=b"x" * 50_000_000))
        read.set()
        refusing.join()
    assert (failure.status, "too big" in failure.message) == (413, True)


# -- TLS and proxies -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving_tls(authority: trustme.CA, host: str, reply: Sequence[Step] = ()) -> Iterator[str]:
    """The address of a server whose certificate is of this host."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    with FakeServer(lambda _: reply or completion(), tls=context) as server:
        yield server.base_url


def test_a_connection_that_is_not_reused_closes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With TLS, `close` waits for the server's word; the loop may end before."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    last = [HEAD.replace(b"\r\n", b"\r\nConnection: close\r\n", 1), chunk(delta("42", finish="stop") + DONE) + END]
    with serving_tls(authority, "127.0.0.1", last) as url, warnings.catch_warnings(record=True) as unclosed:
        warnings.simplefilter("always", ResourceWarning)
        assert replied(asked_at(MAKERS["http on asyncio's loop"], url)).text == "42"
        gc.collect()
    assert not unclosed


def test_an_unknown_authority_is_refused_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    with serving_tls(authority, "127.0.0.1") as url, serving_tls(authority, "elsewhere.example") as other:
        failure = failed(asked_at(MAKERS["http"], url))
        assert (failure.kind, "SSL_CERT_FILE" in failure.message) == ("refused", True)
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert replied(asked_at(MAKERS["http"], url)).text == "42"
        assert failed(asked_at(MAKERS["http"], other)).kind == "refused", "a certificate of another host"


def test_a_request_through_a_proxy_reaches_the_proxy_with_the_full_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(lambda _: completion()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert replied(asked_at(MAKERS["http"], "http://api.example.com/v1")).text == "42"
        assert proxy.requests[0].path == "http://api.example.com/v1/chat/completions"


@pytest.mark.parametrize("sent", [b"POST /v1 HTTP/1.1\r\nA: b", b"POST /v1 HTTP/1.1\r\nContent-Length: 9\r\n\r\n{}"])
def test_the_servers_of_tests_answer_whole_requests_only(sent: bytes) -> None:
    """An answer relies on the fields of its request, so a client that leaves midway is no error of a thread."""
    with FakeServer(lambda _: completion()) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
    assert server.requests == []


def test_a_stopped_test_server_keeps_no_connection_that_it_just_accepted() -> None:
    stopped = threading.Event()

    class Late(FakeServer):
        def _serve(self, connection: socket.socket) -> None:
            stopped.wait()
            super()._serve(connection)

    with Late(lambda _: completion()) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        assert server.wait_for(lambda: server.connections == 1)
        server.stop()
        stopped.set()
        assert client.recv(1) == b""
