"""The openai package would ask again by itself; attempts are counted here, so it may not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Deadlines
from harness.client.openai_sdk import OpenaiTransport
from harness.client.protocol.reply import RequestFailed
from tests.faults.server import CLOSE, HEAD, RESET, FaultServer, Step, chunk, delta, http

BODY = b'{"model": "m", "messages": [], "stream": true}'


@pytest.mark.parametrize(
    "steps",
    [
        *[[http(status, {"error": {"message": "no"}})] for status in (408, 409, 429, 500, 502, 503, 504)],
        [http(500, b"", x_should_retry="true", retry_after="0")],
        [RESET],
        [CLOSE],
        [HEAD, chunk(delta("half")), CLOSE],
    ],
)
def test_the_sdk_itself_asks_once_whatever_fails(steps: Iterable[Step]) -> None:
    async def ask(url: str) -> None:
        transport = OpenaiTransport()
        try:
            with pytest.raises(RequestFailed):
                await transport.complete(Endpoint.parse(url, "key"), "/chat/completions", BODY, Deadlines(), 1_000_000)
        finally:
            await transport.close()

    with FaultServer(lambda _: steps) as server:
        asyncio.run(ask(server.base_url))
        assert len(server.requests) == 1
