"""How far a reply under way has come, for whoever looks: the same on every transport."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Literal

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Arriving, Deadlines
from harness.client.loop import new_event_loop
from harness.client.transport import open_transport
from harness.testing import FakeServer, Pause, Request, Step, delta, event_stream
from tests.patience import PATIENCE_SECONDS


@pytest.mark.parametrize("name", ["http", "openai"])
@pytest.mark.parametrize("tokens", [1, 7, 300])
def test_tokens_are_counted_before_the_reply_has_ended(name: Literal["http", "openai"], tokens: int) -> None:
    let_go = threading.Event()

    def answer(_: Request) -> Iterator[Step]:
        head, *events = event_stream(*[delta("word ")] * tokens, delta("end", finish="stop"))
        yield head
        yield from events[:tokens]
        while not let_go.wait(0.01):
            yield Pause(0.01)
        yield from events[tokens:]

    async def ask(server: FakeServer) -> tuple[int, int]:
        transport = open_transport(name)
        arriving = Arriving()
        assert arriving.count() == 0
        body = b'{"model":"m","messages":[],"stream":true}'
        task = asyncio.ensure_future(
            transport.complete(
                Endpoint.parse(server.base_url), "/chat/completions", body, Deadlines(), 1 << 20, arriving
            )
        )
        while arriving.count() < tokens:
            await asyncio.sleep(0.01)
        assert not task.done()
        seen = arriving.count()
        let_go.set()
        reply = await task
        await transport.close()
        return seen, reply.timing.events or 0

    with FakeServer(answer) as server, asyncio.Runner(loop_factory=new_event_loop) as runner:
        seen, events = runner.run(asyncio.wait_for(ask(server), PATIENCE_SECONDS))
    assert events == tokens + 1
    assert tokens <= seen <= 1.02 * tokens + 1
