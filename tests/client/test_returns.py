"""After a thousand failures of endpoints, descriptors and tasks are as many as before them."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Deadlines, Transport
from harness.client.protocol.reply import RequestFailed
from harness.client.transport import Transport as HttpTransport
from harness.testing import CLOSE, HEAD, RESET, FakeServer, Request, Step, completion, http

N_FAILURES = 1000
OPEN = Path("/proc/self/fd")
BODY = b'{"model": "m", "stream": true, "messages": []}'
HABITS: list[list[Step]] = [
    [CLOSE], [RESET], [http(500, b"no")], [http(429)], [HEAD, CLOSE], [HEAD, RESET], [b"no HTTP\r\n\r\n", CLOSE],
    [http(200, b"not an event stream")],
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not OPEN.is_dir(), reason="open descriptors are listed on Linux only")
@pytest.mark.parametrize("make", [HttpTransport])
def test_descriptors_and_tasks_return_to_where_they_began(make: Callable[[], Transport]) -> None:
    habits = itertools.cycle(HABITS)
    well = False

    def answer(_: Request) -> Iterable[Step]:
        return completion() if well else next(habits)

    async def main(url: str, nobody: str) -> None:
        nonlocal well
        transport = make()

        async def ask(number: int) -> None:
            address = nobody if number % 5 == 0 else url
            with pytest.raises(RequestFailed):
                await transport.complete(Endpoint.parse(address), "/chat/completions", BODY, Deadlines(), 1 << 20)

        async def counts() -> tuple[int, int]:
            await asyncio.sleep(0.1)
            gc.collect()
            return len(list(OPEN.iterdir())), len(asyncio.all_tasks())

        for number in range(20):
            await ask(number)
        files, tasks = await counts()
        for begin in range(0, N_FAILURES, 20):
            await asyncio.gather(*(ask(begin + i) for i in range(20)))
        after_files, after_tasks = await counts()
        assert after_tasks == tasks
        assert after_files <= files + 20, "no more than the connections that are kept"
        well = True
        await transport.complete(Endpoint.parse(url), "/chat/completions", BODY, Deadlines(), 1 << 20)
        await transport.close()

    with FakeServer(answer) as server:
        asyncio.run(main(server.base_url, "http://127.0.0.1:1/v1"))
