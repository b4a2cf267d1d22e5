"""A reply that is left over on a kept connection is never taken for the reply to the next request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.fast.transport import FastTransport
from harness.client.interface import Deadlines, Transport
from harness.client.libraries.aio import AiohttpTransport
from harness.client.libraries.sdk import SdkTransport
from harness.client.protocol.reply import RequestFailed
from tests.faults.server import FaultServer, Pause, Request, Step, http

Answer = Callable[[Request], Iterable[Step]]


def reply(word: str, reply_id: str | None = None) -> bytes:
    choice = {"index": 0, "message": {"content": word}, "finish_reason": "stop"}
    return http(200, {"id": reply_id or f"id-{word}", "model": "m", "choices": [choice]})


def word_of(request: Request) -> str:
    return str(request.json["messages"])


def texts(transport_of: Callable[[], Transport], answer: Answer, n: int = 12, pause: float = 0.0) -> list[str | None]:
    """What `n` requests came to, one after another, each asking for its own word; None where one failed."""

    async def main(url: str) -> list[str | None]:
        transport = transport_of()
        got: list[str | None] = []
        for number in range(n):
            body = json.dumps({"model": "m", "messages": f"w{number}"}).encode()
            try:
                done = await transport.complete(Endpoint.parse(url), "/chat/completions", body, Deadlines(), 1 << 20)
                got.append(done.text)
            except RequestFailed:
                got.append(None)
            await asyncio.sleep(pause)
        await transport.close()
        return got

    with FaultServer(answer) as server:
        return asyncio.run(main(server.base_url))


ALL = [FastTransport, AiohttpTransport]
OWN = [f"w{n}" for n in range(12)]


def never_anothers(got: list[str | None]) -> None:
    assert all(text in (None, own) for text, own in zip(got, OWN, strict=True)), got


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("same_id", [True, False])
def test_a_reply_that_came_before_the_request_was_sent(make: Callable[[], Transport], same_id: bool) -> None:
    def answer(request: Request) -> Iterable[Step]:
        word = word_of(request)
        yield reply(word)
        yield Pause(0.01)
        yield reply(word, None if same_id else "another")

    got = texts(make, answer, pause=0.05)
    assert got == OWN


@pytest.mark.parametrize("make", ALL)
def test_a_second_reply_in_the_same_bytes(make: Callable[[], Transport]) -> None:
    assert texts(make, lambda request: [reply(word_of(request)) * 2]) == OWN


def test_a_reply_that_comes_again_after_the_request_was_sent() -> None:
    before: list[str] = []

    def answer(request: Request) -> Iterable[Step]:
        word = word_of(request)
        if before and int(word[1:]) % 4 == 3:
            yield reply(before[-1])
            yield Pause(0.01)
        before.append(word)
        yield reply(word)

    got = texts(FastTransport, answer)
    never_anothers(got)
    assert got.count(None) == 3


@pytest.mark.parametrize("make", [*ALL, SdkTransport])
def test_a_server_whose_replies_all_have_one_id_is_believed(make: Callable[[], Transport]) -> None:
    assert texts(make, lambda request: [reply(word_of(request), "chatcmpl-1")]) == OWN


@pytest.mark.parametrize("make", [*ALL, SdkTransport])
def test_a_server_whose_ids_are_the_time_of_day_is_believed(make: Callable[[], Transport]) -> None:
    assert texts(make, lambda request: [reply(word_of(request), f"cmpl-{int(word_of(request)[1:]) // 3}")]) == OWN
