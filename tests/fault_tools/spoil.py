"""mitmproxy addon that spoils event streams: `mitmdump -s spoil.py --set spoil=MODE --set every=N --set record=FILE`.

Every N-th answer to a completion is spoilt, and a line with the mode is appended to FILE each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mitmproxy import ctx, http  # type: ignore[import-not-found]
from mitmproxy.addonmanager import Loader  # type: ignore[import-not-found]

EVENTS_BEFORE = 3
"""Events that pass unharmed before a stream is cut or damaged."""
SLOW_SECONDS = 2.0
STALLED_SECONDS = 600.0
PAGE = b"<html><h1>Please log in</h1></html>"

Filter = Callable[[bytes], list[bytes]]


class Spoil:
    """Counts completions and spoils their streams."""

    def __init__(self) -> None:
        self.completions = 0

    def load(self, loader: Loader) -> None:
        loader.add_option("spoil", str, "", "what is done to a stream")
        loader.add_option("every", int, 1, "to which streams")
        loader.add_option("record", str, "", "file with a line for each fault")

    def request(self, flow: http.HTTPFlow) -> None:
        if flow.request.method != "POST":
            return
        self.completions += 1
        flow.metadata["spoilt"] = self.completions % ctx.options.every == 0
        if flow.metadata["spoilt"] and ctx.options.spoil == "page":
            self._record()
            flow.response = http.Response.make(
                200, b"<html><h1>Please log in</h1></html>", {"Content-Type": "text/html"}
            )

    async def responseheaders(self, flow: http.HTTPFlow) -> None:
        mode = ctx.options.spoil
        if not flow.metadata.get("spoilt") or mode == "page":
            return
        self._record()
        if mode in ("slow", "stalled"):
            await asyncio.sleep(SLOW_SECONDS if mode == "slow" else STALLED_SECONDS)
        assert flow.response is not None
        seen: list[int] = []
        filters: dict[str, Filter] = {
            "killed": killed(flow),
            "ended": ended([]),
            # mitmproxy writes no bytes as a chunk of length 0, which ends the body; the next ones are left over.
            "leftover": ended([b""]),
            "halved": lambda data: halved(data, seen),
            "no_done": no_done,
            "crumbs": crumbs,
        }
        flow.response.stream = whole(filters[mode]) if mode in filters else True

    def response(self, flow: http.HTTPFlow) -> None:
        # A server closes what was idle for seconds. mitmproxy would use it again and answer 502, a fault of its own.
        if flow.server_conn.connected:
            handler_of(flow).close_connection(flow.server_conn)

    def _record(self) -> None:
        with Path(ctx.options.record).open("a") as file:
            file.write(f"{ctx.options.spoil}\n")


def handler_of(flow: http.HTTPFlow) -> Any:
    """mitmproxy's own keeper of the flow's connections."""
    handlers = ctx.master.addons.get("proxyserver").connections.values()
    return next(handler for handler in handlers if handler.client is flow.client_conn)


def whole(spoil: Filter) -> Filter:
    """`spoil` without empty pieces of its own making at the end of the body."""
    return lambda data: spoil(data) if data else []


def killed(flow: http.HTTPFlow) -> Filter:
    """The connection breaks inside the stream."""
    events = 0
    closed: list[bool] = []

    def spoil(data: bytes) -> list[bytes]:
        nonlocal events
        events += data.count(b"data:")
        if events > EVENTS_BEFORE and not closed:
            # flow.kill() lets a stream that has begun go on to its end.
            handler = handler_of(flow)
            handler.transports[handler.client].writer.close()
            closed.append(True)
        return [] if closed else [data]

    return spoil


def ended(rest: list[bytes]) -> Filter:
    """The body ends properly after a few events: no finish reason, no [DONE]. `rest` takes each later event's place."""
    events = 0

    def spoil(data: bytes) -> list[bytes]:
        nonlocal events
        events += data.count(b"data:")
        return [data] if events <= EVENTS_BEFORE else rest

    return spoil


def halved(data: bytes, seen: list[int]) -> list[bytes]:
    """One event loses its second half."""
    seen.append(data.count(b"data:"))
    now = sum(seen)
    return [data[: len(data) // 2] if now - seen[-1] < EVENTS_BEFORE <= now else data]


def no_done(data: bytes) -> list[bytes]:
    """The stream lacks its last event; the finish reason is there."""
    without_done = data.replace(b"data: [DONE]\n\n", b"")
    return [without_done] if without_done else []


def crumbs(data: bytes) -> list[bytes]:
    """The stream is whole, in pieces of three bytes."""
    return [data[i : i + 3] for i in range(0, len(data), 3)]


addons = [Spoil()]
