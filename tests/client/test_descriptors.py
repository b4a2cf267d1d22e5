"""No descriptor left for a socket: every transport says so."""

from __future__ import annotations

import asyncio
import os
import resource
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Deadlines, Transport
from harness.client.loop import new_event_loop
from harness.client.openai_sdk import OpenaiTransport
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.transport import Transport as HttpTransport
from harness.testing import FakeServer, Pause, Request, Step, completion

OPEN = Path("/proc/self/fd")

BODY = b'{"model": "test-model", "stream": true, "messages": []}'


@pytest.fixture
def no_descriptors() -> Iterator[Callable[[], None]]:
    """A call that lets no further file be opened in this process."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []

    def take_all() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(p.name) for p in OPEN.iterdir()) + 8, before[1]))
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass

    yield take_all
    for descriptor in taken:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.skipif(not OPEN.is_dir(), reason="open descriptors are listed on Linux only")
@pytest.mark.parametrize("make", [HttpTransport, OpenaiTransport])
def test_a_full_table_of_descriptors_is_told_by_its_cure(
    make: Callable[[], Transport], no_descriptors: Callable[[], None]
) -> None:
    released = threading.Event()

    def held(_: Request) -> Iterator[Step]:
        while not released.is_set():
            yield Pause(0.01)
        yield from completion()

    async def twice(endpoint: Endpoint) -> RequestFailed:
        transport = make()

        def ask() -> Coroutine[Any, Any, Reply]:
            return transport.complete(endpoint, "/chat/completions", BODY, Deadlines(connect=5.0), 1 << 20)

        try:
            first = asyncio.create_task(ask())
            while not server.requests:
                await asyncio.sleep(0.01)
            no_descriptors()
            with pytest.raises(RequestFailed) as failed:
                await ask()
            released.set()
            assert (await first).text == "42", "who has a socket is not disturbed"
            return failed.value
        finally:
            released.set()
            await transport.close()

    with FakeServer(held) as server, asyncio.Runner(loop_factory=new_event_loop) as runner:
        failure = runner.run(twice(Endpoint.parse(server.base_url)))
    assert failure.kind == "connect"
    assert failure.retryable
    assert "ulimit -n" in failure.message
