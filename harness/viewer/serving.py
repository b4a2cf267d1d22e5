"""Runs the viewer: finds a port, makes a token, and ends at Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence

from aiohttp import web

from harness.core.errors import UsageError
from harness.viewer.app import Viewer
from harness.viewer.beside import Published
from harness.viewer.library import Library
from harness.viewer.pages import ReadFacts

TOKEN_BYTES = 24
"""Number of random bytes in a token."""


def serve(
    library: Library,
    on_ready: Callable[[str], None],
    *,
    published: Published,
    facts: ReadFacts,
    ports: Sequence[int],
) -> None:
    """Serve until SIGINT or SIGTERM. on_ready: called with the address once the server answers.

    published: returns the published scores beside a run's. facts: reads the settings and the log of a run. ports: tried
    in order; 0: any free one. Raises `UsageError` if no port is free.
    """
    asyncio.run(_serve(lambda token, port: Viewer(library, published, facts, token, port), on_ready, ports))


async def _serve(
    make_viewer: Callable[[str, int], Viewer], on_ready: Callable[[str], None], ports: Sequence[int]
) -> None:
    """Serve the viewer until a signal ends it.

    make_viewer: (token, port) → the viewer. on_ready: called with the address. ports: tried in this order.
    """
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with answering(make_viewer, ports) as address:
        await asyncio.to_thread(on_ready, address)
        await stopped.wait()


@contextlib.asynccontextmanager
async def answering(make_viewer: Callable[[str, int], Viewer], ports: Sequence[int]) -> AsyncIterator[str]:
    """Context manager in which a viewer answers requests; its value is the viewer's address.

    make_viewer: (token, port) → the viewer. ports: tried in this order. Raises `UsageError` if no port is free.
    """
    listening = _listen(ports)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(TOKEN_BYTES)
    # access_log=None, because a log of requests would hold the token.
    runner = web.AppRunner(make_viewer(token, port).application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        yield f"http://127.0.0.1:{port}/?token={token}"
    finally:
        await runner.cleanup()


def _listen(ports: Sequence[int]) -> socket.socket:
    """A socket that listens on the first free one of these ports. Raises `UsageError`."""
    for port in ports:
        with contextlib.suppress(OSError):
            return socket.create_server(("127.0.0.1", port))
    raise UsageError(
        "the port is taken on 127.0.0.1; give another one, or 0 for any free port.", field="port", value=ports[0]
    )
