"""A response as a connection of the transport reads it, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from unittest.mock import MagicMock

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Deadlines
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.protocol.sse import ReplyParser
from harness.client.transport import Connection, Request, Server

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def played(parser: ReplyParser, reads: Iterable[bytes]) -> Reply | RequestFailed:
    """The outcome of a response that comes in these reads; then the server closes the connection."""

    async def main() -> Reply | RequestFailed:
        connection = Connection(Server(Endpoint.parse("http://127.0.0.1:1")))
        connection.connection_made(MagicMock())
        request = connection.request = Request(connection, parser, Deadlines())
        for data in reads:
            if not request.reply.done():
                connection.data_received(data)
        connection.connection_lost(None)
        try:
            return await request.reply
        except RequestFailed as failure:
            return failure

    return asyncio.run(main())
