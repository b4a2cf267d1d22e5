"""Measures how far the time to the first token is wrong while the client's thread is busy, with the kernel's time
stamps and with the event loop's.

    python bench/stamps.py [--requests 400]

A server in a process of its own writes the time into its first token; the error is the client's time stamp minus that
time. The client's loop does nothing else, or burns so many milliseconds of CPU in each turn. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Deadlines
from harness.client.loop import StreamLoop
from harness.client.transport import Transport as HttpTransport

BUSY_MS = (0.0, 5.0, 20.0)
STREAMS = 16
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def frame(delta: str, finish: str = "null") -> bytes:
    """An event of the stream as an HTTP chunk."""
    event = b'data: {"choices":[{"index":0,"delta":%b,"finish_reason":%b}]}\n\n' % (delta.encode(), finish.encode())
    return b"%x\r\n%b\r\n" % (len(event), event)


def serve() -> None:
    """Print the port, then serve for ever with a thread for each connection."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def answer(sock: socket.socket) -> None:
    """Answer the requests of one connection: send the head, after a pause the token with the time in it, after another
    pause the end.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    rng = random.Random()
    while sock.recv(65536):
        time.sleep(rng.uniform(0.01, 0.05))
        sock.send(HEAD + frame(f'{{"content":"{time.time_ns()}"}}'))
        time.sleep(rng.uniform(0.06, 0.08))
        sock.send(frame("{}", '"stop"') + b"0\r\n\r\n")


async def stamp_errors(port: int, requests: int, busy_ms: float, kernel: bool) -> list[float]:
    """Send requests; return the sorted stamp_errors, in seconds, of the client's time stamps of first tokens.

    The first token of each reply is the time at which the server sent it, in ns. busy_ms: milliseconds for which
    another task blocks the event loop in each of its turns. kernel: the kernel makes the time stamps.
    """
    transport = HttpTransport(kernel_stamps=kernel)
    endpoint = Endpoint.parse(f"http://127.0.0.1:{port}")
    delays: list[float] = []
    todo: Iterator[int] = iter(range(requests))

    async def worker() -> None:
        for _ in todo:
            reply = await transport.complete(endpoint, "/chat/completions", b"{}", Deadlines(), 1 << 20)
            assert reply.timing.first_token is not None
            delays.append(reply.timing.started + reply.timing.first_token - int(reply.text or "") / 1e9)

    async def burn() -> None:
        while True:
            until = time.perf_counter() + busy_ms / 1e3
            while time.perf_counter() < until:
                pass
            await asyncio.sleep(0)

    burning = asyncio.create_task(burn()) if busy_ms else None
    await asyncio.gather(*(worker() for _ in range(STREAMS)))
    if burning is not None:
        burning.cancel()
    await transport.close()
    return sorted(delays)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    table = Table(title="Error of the time to the first token, ms")
    for column in ("the loop", "stamps", "p50", "p99", "worst", "lag p99"):
        table.add_column(column, justify="left" if column in ("the loop", "stamps") else "right")
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        for busy_ms in BUSY_MS:
            for kernel in (False, True):
                loop = StreamLoop()
                with asyncio.Runner(loop_factory=lambda loop=loop: loop) as runner:  # type: ignore[misc]
                    delays = runner.run(stamp_errors(port, arguments.requests, busy_ms, kernel))
                    p50, p99, worst = (
                        delays[min(int(len(delays) * q), len(delays) - 1)] * 1e3 for q in (0.5, 0.99, 1.0)
                    )
                    lag = loop.lag.p99 * 1e3
                row = f"{busy_ms:g} ms of CPU a turn" if busy_ms else "idle"
                stamps = "kernel" if kernel else "user"
                table.add_row(row, stamps, f"{p50:.3f}", f"{p99:.3f}", f"{worst:.3f}", f"{lag:.2f}")
    finally:
        server.kill()
        server.wait()
    Console().print(table)


if __name__ == "__main__":
    main()
