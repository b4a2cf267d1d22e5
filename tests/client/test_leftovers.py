"""A reply that is left over on a kept connection is never taken for the reply to the next request."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest

from harness.client.interface import Deadlines, Transport
from harness.client.openai_sdk import OpenaiTransport
from harness.client.protocol.reply import Reply
from harness.client.transport import Transport as HttpTransport
from harness.testing import CLOSE, STALL, FakeServer, Pause, Request, Step, http
from tests.client.test_transports import Maker, opened, outcome_of

Answer = Callable[[Request], Iterable[Step]]
ALL = [HttpTransport, OpenaiTransport]
N_ASKED = 12
OWN = [f"w{n}" for n in range(N_ASKED)]


def reply(word: str, reply_id: str | None = None) -> bytes:
    choice = {"index": 0, "message": {"content": word}, "finish_reason": "stop"}
    return http(200, {"id": reply_id or f"id-{word}", "model": "m", "choices": [choice]})


def word_of(request: Request) -> str:
    return str(request.json["messages"])


class Told(NamedTuple):
    """texts: of the replies, None where a request failed. notes: of the replies. connections: of the requests."""

    texts: list[str | None]
    notes: list[tuple[str, ...]]
    connections: list[str]


def asked(
    make: Callable[[], Transport], answer: Answer, waits: Callable[[int], bool] = lambda _: False, n: int = N_ASKED
) -> Told:
    """What `n` requests come to, one after another, each for a word of its own.

    waits: whether the one of this number is followed by a wait until all is read that the server sent so far.
    """
    told = Told([], [], [])
    sent: list[Request] = []

    def noted(request: Request) -> Iterable[Step]:
        told.connections.append(threading.current_thread().name)
        try:
            yield from answer(request)
        finally:
            sent.append(request)

    async def main(url: str) -> None:
        async with opened(Maker(make)) as transport:
            for number in range(n):
                body = json.dumps({"model": "m", "messages": f"w{number}"}).encode()
                outcome = await outcome_of(transport, url, Deadlines(), body)
                told.texts.append(outcome.text if isinstance(outcome, Reply) else None)
                told.notes.extend([outcome.notes] if isinstance(outcome, Reply) else [])
                # Not until all requests are answered: one that meets a reply left over may never reach the server.
                while waits(number) and len(sent) < len(told.connections):
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.02 * waits(number))

    with FakeServer(noted) as server:
        asyncio.run(main(server.base_url))
    return told


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("same_id", [True, False])
def test_a_reply_that_came_before_the_request_was_sent(make: Callable[[], Transport], same_id: bool) -> None:
    def answer(request: Request) -> Iterable[Step]:
        word = word_of(request)
        return [reply(word), Pause(0.01), reply(word, None if same_id else "another")]

    assert asked(make, answer, lambda _: True).texts == OWN


@pytest.mark.parametrize("make", ALL)
def test_a_connection_with_an_implausible_reply_carries_no_other_request(make: Callable[[], Transport]) -> None:
    """Its server may say nothing on it any more, which would cost the next request its patience."""
    spoilt = http(200, {"id": "x", "choices": [{"index": 0, "message": {"content": 5}, "finish_reason": "stop"}]})

    def answer(request: Request) -> Iterable[Step]:
        return [spoilt, STALL] if word_of(request) == "w0" else [reply(word_of(request))]

    assert asked(make, answer, n=4).texts == [None, "w1", "w2", "w3"], "whoever waited would have no reply"


@pytest.mark.parametrize("make", ALL)
def test_a_reply_with_trailing_data_is_noted_and_its_connection_dropped(make: Callable[[], Transport]) -> None:
    event = b'data: {"id":"%d","model":"m","choices":[{"delta":{"content":"w"},"finish_reason":"stop"}]}\n\n'
    ends = [b"data: [DONE]\n\n", b"data: [DONE]\n\ndata: more\n\n", b"\0\0\0\n\ndata: [DONE]\n\n"]

    def answer(request: Request) -> Iterable[Step]:
        return [http(200, event % request.number + ends[request.number - 1], content_type="text/event-stream")]

    told = asked(make, answer, n=3)
    assert told.notes == [(), ("bytes after [DONE]",), ("bytes after the finish reason that are not events",)]
    assert len(set(told.connections)) == (3 if make is OpenaiTransport else 2)


@pytest.mark.parametrize("late", [0.0, 0.002, 0.03])
def test_after_a_first_doubt_a_connection_carries_one_request(late: float) -> None:
    def answer(request: Request) -> Iterable[Step]:
        own, other = reply(word_of(request)), reply("of nobody")
        return [own, Pause(late), other] if late else [own + other]

    told = asked(HttpTransport, answer, lambda n: n == 3)  # what nobody asked for has come
    assert told.texts[5:] == OWN[5:]
    notes = [note.partition(";")[0] for notes in told.notes for note in notes]
    assert notes == ["its server has sent unrequested replies"]
    assert len(set(told.connections[-6:])) == 6


def test_a_server_that_closes_or_times_out_idle_connections_is_not_doubted() -> None:
    late = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    def answer(request: Request) -> Iterable[Step]:
        return [reply(word_of(request)), Pause(0.01), *([late] if request.number % 2 else []), CLOSE]

    told = asked(HttpTransport, answer, lambda _: True, n=6)
    assert (told.texts, told.notes) == (OWN[:6], [()] * 6)
