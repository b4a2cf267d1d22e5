"""Every transport meets every fault with a reply or a typed failure, on real sockets.

For: harness.client.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import ssl
import tempfile
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trustme

from harness.client import interface
from harness.client import transport as http_transport
from harness.client.address.endpoint import Endpoint, proxy_for
from harness.client.interface import Deadlines, Transport
from harness.client.loop import new_event_loop
from harness.client.openai_sdk import OpenaiTransport
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.transport import Transport as HttpTransport
from harness.client.transport import open_transport
from harness.core.choices import TransportName
from harness.core.errors import UsageError
from tests.budget import share_of
from tests.faults.server import (
    CLOSE,
    DONE,
    END,
    HEAD,
    RESET,
    STALL,
    Answer,
    FaultServer,
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
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

KEY = "sk-canary-0123456789"
BODY = json.dumps({"model": "test-model", "messages": [], "stream": True}).encode()
NO_TOKEN = Deadlines(connect=20.0, first_token=0.2, idle=20.0)
NO_MORE = Deadlines(connect=20.0, first_token=20.0, idle=0.2)
PATIENT = Deadlines(connect=5.0, first_token=20.0, idle=20.0)
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
    monkeypatch.setattr(http_transport, "LOOK_S", 0.02)
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


async def outcome_of(transport: Transport, url: str, deadlines: Deadlines = PATIENT, body: bytes = BODY) -> Outcome:
    try:
        return await transport.complete(Endpoint.parse(url, KEY), "/chat/completions", body, deadlines, MAX_BYTES)
    except RequestFailed as failure:
        return failure


def ask(make: Maker, answer: Answer, deadlines: Deadlines = PATIENT) -> Outcome:
    """One request to a server that answers so."""

    async def main(url: str) -> Outcome:
        async with opened(make) as transport:
            return await outcome_of(transport, url, deadlines)

    with FaultServer(answer) as server:
        return run(make, main(server.base_url))


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


def test_the_query_of_an_address_goes_with_each_request_and_a_key_in_it_is_hidden(make: Maker) -> None:
    def answer(request: Request) -> Iterable[Step]:
        asked.append(request.path)
        return [http(400, {"error": {"message": f"you sent {request.path}"}})]

    async def main(url: str) -> None:
        async with opened(make) as transport:
            message = failed(await outcome_of(transport, f"{url}?api-version=2024&key={KEY}")).message
            assert "api-version=2024&key=[hidden]" in message

    asked: list[str] = []
    with FaultServer(answer) as server:
        run(make, main(server.base_url))
    assert asked == [f"/v1/chat/completions?api-version=2024&key={KEY}"]


def test_a_reply_comes_whole_with_its_facts(make: Maker) -> None:
    with FaultServer(lambda _: completion("forty-two")) as server:

        async def main() -> Reply:
            async with opened(make) as transport:
                return replied(await outcome_of(transport, server.base_url))

        reply = run(make, main())
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
    with FaultServer(lambda _: completion("forty-two"), unix=socket_path) as server:

        async def main() -> None:
            for url in (server.base_url, f"http+unix://{quote(socket_path, safe='')}/v1"):
                async with opened(Maker(open_transport)) as transport:
                    for _ in range(2):
                        assert replied(await outcome_of(transport, url)).text == "forty-two"

        run(Maker(open_transport), main())
        assert server.connections == 2
        assert {request.path for request in server.requests} == {"/v1/chat/completions"}


def test_a_sockets_path_may_hold_any_byte_but_no_user(tmp_path: Path) -> None:
    odd = Endpoint.parse("unix:/tmp/\udcff s.sock")
    assert odd.socket_path == "/tmp/\udcff s.sock"
    assert odd.base_url == "http+unix://%2Ftmp%2F%FF%20s.sock/v1"
    assert Endpoint.parse("http+unix://user:pw@%2Ftmp%2Fx.sock").base_url == "http+unix://%2Ftmp%2Fx.sock/v1"


@pytest.mark.parametrize(("name", "message"), [("openai", "use transport=http")])
def test_a_transport_without_unix_sockets_says_so(socket_path: str, name: TransportName, message: str) -> None:
    maker = Maker(lambda: open_transport(name))

    async def main() -> None:
        async with opened(maker) as transport:
            failure = failed(await outcome_of(transport, f"unix:{socket_path}"))
            assert failure.kind == "refused"
            assert message in failure.message
            assert socket_path in failure.message

    run(maker, main())


def test_nobody_at_a_unix_socket_is_told_with_its_path(socket_path: str) -> None:
    async def main() -> None:
        async with opened(Maker(open_transport)) as transport:
            failure = failed(await outcome_of(transport, f"unix:{socket_path}"))
            assert failure.kind == "connect"
            assert f"cannot connect to {socket_path}: " in failure.message

    run(Maker(open_transport), main())


def test_connections_are_kept_between_requests(make: Maker) -> None:
    with FaultServer(lambda _: completion()) as server:

        async def main() -> None:
            async with opened(make) as transport:
                for _ in range(5):
                    replied(await outcome_of(transport, server.base_url))

        run(make, main())
        assert len(server.requests) == 5
        assert server.connections == (5 if make is MAKERS["openai"] else 1)  # see `test_leftovers`


def test_many_requests_at_once_each_get_their_own_reply(make: Maker) -> None:
    def answer(request: Request) -> Iterable[Step]:
        word = request.json["messages"]
        yield HEAD
        for letter in word:
            yield chunk(delta(letter))
            yield Pause(0.001)
        yield chunk(delta(finish="stop") + DONE) + END

    with FaultServer(answer) as server:

        async def main() -> list[Outcome]:
            async with opened(make) as transport:
                bodies = [
                    json.dumps({"model": "m", "messages": f"word-{n}", "stream": True}).encode() for n in range(40)
                ]
                return list(await asyncio.gather(*(outcome_of(transport, server.base_url, body=b) for b in bodies)))

        assert [replied(each).text for each in run(make, main())] == [f"word-{n}" for n in range(40)]


# -- connecting ------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_a_refused_connection_names_host_and_port(make: Maker) -> None:
    port = free_port()

    async def main() -> Outcome:
        async with opened(make) as transport:
            return await outcome_of(transport, f"http://127.0.0.1:{port}")

    failure = failed(run(make, main()))
    assert failure.kind == "connect"
    assert f"127.0.0.1:{port}" in failure.message


def test_an_unknown_host_is_a_failure_to_connect(make: Maker) -> None:
    async def main() -> Outcome:
        async with opened(make) as transport:
            return await outcome_of(transport, "http://no-such-host.invalid:8000")

    failure = failed(run(make, main()))
    assert failure.kind == "connect"
    assert "no-such-host.invalid:8000" in failure.message


def test_a_server_that_closes_before_replying_is_a_failure_to_connect(make: Maker) -> None:
    for act in (CLOSE, RESET):
        assert failed(ask(make, steps(act))).kind == "connect"


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_ipv6_addresses_are_accepted(make: Maker) -> None:
    try:
        server = FaultServer(lambda _: completion(), host="::1")
    except OSError:
        pytest.skip("no IPv6 loopback here")
    with server:

        async def main() -> Outcome:
            async with opened(make) as transport:
                return await outcome_of(transport, server.base_url)

        assert replied(run(make, main())).text == "42"


def test_localhost_works_when_the_server_listens_on_ipv4_only(make: Maker) -> None:
    with FaultServer(lambda _: completion()) as server:

        async def main() -> Outcome:
            async with opened(make) as transport:
                return await outcome_of(transport, f"http://localhost:{server.port}/v1")

        assert replied(run(make, main())).text == "42"


def test_loopback_is_never_proxied(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert replied(ask(make, lambda _: completion())).text == "42"


def test_a_redirect_is_not_followed_and_named(make: Maker) -> None:
    with FaultServer(lambda _: completion()) as second_server:
        target = f"{second_server.base_url}/chat/completions"
        failure = failed(ask(make, steps(http(307, location=target))))
        assert failure.kind == "refused"
        assert target in failure.message
        assert second_server.requests == []


# -- HTTP errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"message": "temperature must be non-negative", "type": "BadRequestError"}}, "rejected"),
        (
            400,
            {"object": "error", "message": "The input (9 tokens) is longer than the model's context length"},
            "too_long",
        ),
        (400, {"error": {"message": "exceeds the available context size (2048 tokens)"}}, "too_long"),
        (401, {"error": "Unauthorized"}, "refused"),
        (403, {"detail": "Forbidden"}, "refused"),
        (404, {"error": {"message": "The model `x` does not exist."}}, "refused"),
        (408, {}, "server"),
        (413, {"detail": "too large"}, "rejected"),
        (422, {"detail": [{"loc": ["body", "n"], "msg": "bad"}]}, "rejected"),
        (429, {"error": {"message": "slow down"}}, "rate_limited"),
        (500, {"error": {"message": "boom"}}, "server"),
        (502, {}, "server"),
        (503, {"error": {"type": "Service Unavailable", "code": "no_available_workers", "message": "none"}}, "server"),
        (504, {}, "server"),
    ],
)
def test_each_http_error_has_its_kind(make: Maker, status: int, body: Any, kind: str) -> None:
    failure = failed(ask(make, steps(http(status, body))))
    assert (failure.kind, failure.status) == (kind, status)


def test_the_servers_words_are_shown_without_the_key_it_echoes(make: Maker) -> None:
    body = {"error": {"message": f"the key {KEY} is\x1b[31m wrong"}}
    failure = failed(ask(make, steps(http(401, body))))
    assert "wrong" in failure.message
    assert "\x1b" not in failure.message


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("-3", None), ("nan", None), ("soon", None), ("Wed, 21 Oct 2015 07:28:00 GMT", None)],
)
def test_retry_after_is_read(make: Maker, value: str, seconds: float | None) -> None:
    assert failed(ask(make, steps(http(429, {}, retry_after=value)))).retry_after == seconds


def test_a_retry_after_of_days_is_capped_and_said(make: Maker) -> None:
    failure = failed(ask(make, steps(http(503, {}, retry_after="999999"))))
    assert failure.retry_after == 3600
    assert "999999" in failure.message


def test_a_compressed_error_body_is_read(make: Maker) -> None:
    body = gzip.compress(json.dumps({"error": {"message": "ContextWindowExceededError: too much"}}).encode())
    assert failed(ask(make, steps(http(400, body, content_encoding="gzip")))).kind == "too_long"


def test_a_json_error_under_an_event_stream_header_is_read(make: Maker) -> None:
    reply = http(400, b'{"error": {"message": "exceeds the available context size"}}', content_type="text/event-stream")
    assert failed(ask(make, steps(reply))).kind == "too_long"


# -- streams ---------------------------------------------------------------------------------------------------------


def test_a_compressed_error_takes_no_more_memory_than_it_is_long(make: Maker) -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    tracemalloc.start()
    try:
        assert failed(ask(make, steps(http(500, bomb, content_encoding="gzip")))).kind == "server"
        assert tracemalloc.get_traced_memory()[1] < 25_000_000
    finally:
        tracemalloc.stop()


def test_a_compressed_reply_is_refused(make: Maker) -> None:
    bomb = gzip.compress(b"\0" * 5_000_000)
    failure = failed(ask(make, steps(http(200, bomb, content_encoding="gzip", content_type="text/event-stream"))))
    assert failure.kind == "malformed"


def test_a_whole_json_reply_is_read(make: Maker) -> None:
    body = {
        "id": "r",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "length"}],
    }
    reply = replied(ask(make, steps(http(200, body))))
    assert (reply.text, reply.finish_reason) == ("42", "length")


def test_a_body_without_length_ends_with_the_connection(make: Maker) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    assert replied(ask(make, steps(head, delta("42", finish="stop"), CLOSE))).notes == ("no [DONE]",)
    assert failed(ask(make, steps(head, delta("42"), CLOSE))).kind == "cut"
    assert replied(ask(make, steps(b"HTTP/1.0 200 OK\r\n\r\n", delta("42", finish="stop"), DONE, CLOSE))).text == "42"


TRANSCRIPT = b"".join(event_stream(delta("4∑"), delta("2", finish="stop")))
FINISHED_AT = TRANSCRIPT.index(b'"stop"}]}') + len(b'"stop"}]}')


@pytest.mark.parametrize("act", [CLOSE, RESET])
def test_a_transcript_cut_at_every_byte_is_a_reply_or_a_transient_failure(make: Maker, act: Step) -> None:
    def answer(request: Request) -> Iterable[Step]:
        yield TRANSCRIPT[: request.json["messages"]]
        # A reset throws away what the client has not read yet.
        yield Pause(0.02 if act is RESET else 0)
        yield act

    cuts = share_of(range(0, len(TRANSCRIPT) - 1, 1 if act is CLOSE else 7))

    async def main(url: str) -> list[Outcome]:
        async with opened(make) as transport:
            bodies = [json.dumps({"model": "m", "messages": at, "stream": True}).encode() for at in cuts]
            return [
                outcome
                for i in range(0, len(bodies), 50)
                for outcome in await asyncio.gather(*(outcome_of(transport, url, body=b) for b in bodies[i : i + 50]))
            ]

    with FaultServer(answer) as server:
        outcomes = run(make, main(server.base_url))
    for at, outcome in zip(cuts, outcomes, strict=True):
        if at >= FINISHED_AT:
            assert replied(outcome).text == "4∑2", at
        else:
            failure = failed(outcome)
            assert failure.kind in ("connect", "cut", "malformed"), (at, failure)
            assert failure.retryable, at


def test_a_transcript_in_single_bytes_is_whole(make: Maker) -> None:
    assert replied(ask(make, lambda _: [TRANSCRIPT[i : i + 1] for i in range(len(TRANSCRIPT))])).text == "4∑2"


def test_an_error_event_after_tokens_fails_in_its_words(make: Maker) -> None:
    error = event({"error": {"message": "EngineCore encountered an issue", "type": "InternalServerError", "code": 500}})
    failure = failed(ask(make, lambda _: event_stream(delta("4"), error)))
    assert failure.kind == "server"
    assert "EngineCore" in failure.message


def test_bad_chunk_framing_is_a_transient_failure(make: Maker) -> None:
    failure = failed(ask(make, steps(HEAD, chunk(delta("4")), b"zz\r\nwhat\r\n", CLOSE)))
    assert failure.kind in ("cut", "malformed")


def test_a_reply_that_is_no_http_is_a_typed_failure(make: Maker) -> None:
    assert failed(ask(make, steps(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", CLOSE))).kind in ("malformed", "connect")


def test_generation_without_end_is_a_runaway(make: Maker) -> None:
    def answer(_: Request) -> Iterable[Step]:
        yield HEAD
        while True:
            yield chunk(delta("again ") * 50)

    failure = failed(ask(make, answer))
    assert failure.kind == "runaway"
    assert not failure.retryable


# -- deadlines -------------------------------------------------------------------------------------------------------


def test_no_first_token_in_time_is_a_timeout(make: Maker) -> None:
    for given in ((STALL,), (HEAD, STALL), (HEAD, chunk(delta(role="assistant")), STALL)):
        failure = failed(ask(make, steps(*given), NO_TOKEN))
        assert failure.kind == "timeout"
        assert "0.2 s" in failure.message


def test_a_stall_after_tokens_is_a_timeout(make: Maker) -> None:
    failure = failed(ask(make, steps(HEAD, chunk(delta("so far")), STALL), NO_MORE))
    assert failure.kind == "timeout"


@pytest.mark.parametrize("drip", [chunk(b": ping\n\n"), chunk(delta()), b" "])
def test_pings_do_not_extend_the_idle_deadline(make: Maker, drip: bytes) -> None:
    def answer(_: Request) -> Iterable[Step]:
        yield HEAD + chunk(delta("so far"))
        if drip == b" ":
            yield f"{10**5:x}\r\n".encode()
        while True:
            yield drip
            yield Pause(0.02)

    assert failed(ask(make, answer, NO_MORE)).kind == "timeout"


def test_tokens_extend_the_idle_deadline(make: Maker) -> None:
    def answer(_: Request) -> Iterable[Step]:
        yield HEAD
        for _n in range(6):
            yield chunk(delta("x"))
            yield Pause(0.05)
        yield chunk(delta(finish="stop") + DONE) + END

    assert replied(ask(make, answer, NO_MORE)).text == "x" * 6


def test_a_stall_after_the_finish_reason_costs_nothing(make: Maker) -> None:
    assert replied(ask(make, steps(HEAD, chunk(delta("42", finish="stop")), STALL), NO_MORE)).text == "42"
    assert replied(ask(make, steps(HEAD, chunk(delta("42", finish="stop") + DONE), STALL), PATIENT)).text == "42"


@pytest.mark.parametrize("more", [chunk(b": ping\n\n"), chunk(delta("later") * 200), chunk(DONE)])
@pytest.mark.parametrize("finish", ["stop", None])
def test_what_follows_done_holds_no_slot(make: Maker, more: bytes, finish: str | None) -> None:
    def answer(_: Request) -> Iterable[Step]:
        yield HEAD + chunk(delta("42", finish=finish) + DONE)
        while True:
            yield more
            yield Pause(0.01)

    outcome = ask(make, answer, PATIENT)
    if finish is None:
        assert failed(outcome).kind == "cut"
    else:
        assert replied(outcome).text == "42"


def test_cancelling_closes_the_connection(make: Maker) -> None:
    with FaultServer(steps(HEAD, chunk(delta("x")), STALL)) as server:

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


def test_a_connection_that_failed_is_not_used_again(make: Maker) -> None:
    def answer(request: Request) -> Iterable[Step]:
        if request.number == 1:
            return [HEAD, chunk(delta("x")), chunk(event(b"{broken")), Pause(0.05), chunk(delta("late", finish="stop"))]
        return completion()

    with FaultServer(answer) as server:

        async def main() -> None:
            async with opened(make) as transport:
                failed(await outcome_of(transport, server.base_url))
                assert replied(await outcome_of(transport, server.base_url)).text == "42"

        run(make, main())
        assert server.connections == 2


def test_a_kept_connection_that_the_server_closed_meanwhile_is_a_transient_failure_or_replaced(
    make: Maker,
) -> None:
    with FaultServer(lambda _: [*completion(), CLOSE]) as server:

        async def main() -> list[Outcome]:
            async with opened(make) as transport:
                outcomes = []
                for _ in range(3):
                    outcomes.append(await outcome_of(transport, server.base_url))
                    await asyncio.sleep(0.05)
                return outcomes

        for outcome in run(make, main()):
            assert replied(outcome).text == "42"


# -- TLS and proxies -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def https(authority: trustme.CA) -> Iterator[FaultServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with FaultServer(lambda _: completion(), tls=context) as server:
        yield server


def secure(ca_file: Path | None, url: str) -> Outcome:
    async def main() -> Outcome:
        async with opened(make) as transport:
            return await outcome_of(transport, url)

    make = Maker(lambda: HttpTransport(ca_file=ca_file))
    return run(make, main())  # type: ignore[no-any-return]


def test_a_named_authority_is_trusted(https: FaultServer, authority: trustme.CA, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    assert replied(secure(tmp_path / "ca.pem", https.base_url)).text == "42"


def test_an_unknown_authority_is_refused_with_the_way_out(https: FaultServer) -> None:
    failure = failed(secure(None, https.base_url))
    assert failure.kind == "refused"
    assert "ca_file" in failure.message


def test_a_certificate_for_another_host_is_refused(authority: trustme.CA, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with FaultServer(lambda _: completion(), tls=context) as server:
        assert failed(secure(tmp_path / "ca.pem", server.base_url)).kind == "refused"


def test_a_ca_file_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ca_file='.*none\.pem': .*expected a PEM file"):
        HttpTransport(ca_file=tmp_path / "none.pem")


def test_the_environments_proxy_serves_public_hosts_only() -> None:
    environ = {"HTTPS_PROXY": "http://user:secret@proxy:3128", "no_proxy": "internal.example"}
    assert proxy_for(Endpoint.parse("https://api.example.com/v1"), environ) == "http://user:secret@proxy:3128"
    for direct in ("https://internal.example/v1", "https://10.0.0.7/v1", "https://localhost/v1", "https://[::1]/v1"):
        assert proxy_for(Endpoint.parse(direct), environ) is None
    with pytest.raises(UsageError) as caught:
        proxy_for(Endpoint.parse("https://api.example.com/v1"), {"all_proxy": "socks5://user:secret@proxy:1080"})
    assert "secret" not in str(caught.value)


def test_a_request_through_a_proxy_reaches_the_proxy_with_the_full_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer(lambda _: completion()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert replied(secure(None, "http://api.example.com/v1")).text == "42"
        assert proxy.requests[0].path == "http://api.example.com/v1/chat/completions"


def test_importing_the_client_loads_no_http_library() -> None:
    import subprocess
    import sys

    code = (
        "import sys, harness.client, harness.client.protocol.sse, harness.generation.dispatch.retry,"
        "harness.client.spelling,"
        "harness.client.facts.discovery, harness.client.protocol.failures;"
        "print([name for name in ('openai', 'httpx', 'httpx2', 'starlette', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.timeout(PATIENCE_SECONDS)
def test_an_error_whose_body_has_no_end_is_read_to_a_bound(make: Maker) -> None:
    def endless(_: Request) -> Iterator[Step]:
        yield b"HTTP/1.1 500 X\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        while True:
            yield chunk(b"no " * 100_000)

    with FaultServer(endless) as server:

        async def main() -> None:
            async with opened(make) as transport:
                failure = failed(await outcome_of(transport, server.base_url))
                assert (failure.kind, failure.status) == ("server", 500)
                assert len(failure.message) < 2000

        run(make, main())
