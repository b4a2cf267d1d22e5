"""Runs the viewer: finds a port, makes a token, and ends at Ctrl-C."""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
from collections.abc import Callable, Sequence

import uvicorn
from starlette.concurrency import run_in_threadpool

from harness.core.errors import UsageError
from harness.viewer.app import Published, ReadFacts, Viewer
from harness.viewer.library import Library

TOKEN_BYTES = 24
"""Number of random bytes in a token."""


class Server(uvicorn.Server):
    """Serves a viewer on the first free one of these ports; 0: any. `run` ends when `should_exit` is set.

    on_ready: called with the address once the server answers. published: returns the published scores beside a run's.
    facts: reads the settings and the log of a run. Raises `UsageError` if no port is free.
    """

    def __init__(
        self,
        library: Library,
        on_ready: Callable[[str], None],
        *,
        published: Published,
        facts: ReadFacts,
        ports: Sequence[int],
    ) -> None:
        self._listening, self._on_ready = _listen(ports), on_ready
        port, token = self._listening.getsockname()[1], secrets.token_urlsafe(TOKEN_BYTES)
        self._address = f"http://127.0.0.1:{port}/?token={token}"
        app = Viewer(library, published, facts, token, port).application()
        # access_log=False, because a log of requests would hold the token.
        super().__init__(
            uvicorn.Config(
                app,
                access_log=False,
                log_config=None,
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and tell the address."""
        await super().startup(sockets=sockets)
        await run_in_threadpool(self._on_ready, self._address)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `should_exit` is set, which SIGINT and SIGTERM do in the main thread."""
        super().run(sockets=sockets or [self._listening])


def serve(server: Server) -> None:
    """Serve until SIGINT or SIGTERM."""

    def end(*_: object) -> None:
        # Also for the signal that uvicorn raises once more when it has ended.
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    server.run()


def _listen(ports: Sequence[int]) -> socket.socket:
    """A socket that listens on the first free one of these ports. Raises `UsageError`."""
    for port in ports:
        with contextlib.suppress(OSError):
            return socket.create_server(("127.0.0.1", port))
    raise UsageError(
        "the port is taken on 127.0.0.1; give another one, or 0 for any free port.", field="port", value=ports[0]
    )
