"""A fast fake completion server for measuring clients, with one process and one epoll loop.

    python bench/fake_server.py [PORT [TOKENS [MS]]]

The model name in a request determines the reply: `m,n=200,d=20,r=50` = 200 token events (default: TOKENS, else 100), 20
ms apart (default: MS, else 0 = full speed), the first 50% of them as reasoning; without `"stream": true`, the text
comes in one piece. Events look like vLLM's; tokens contain escapes, UTF-8, and JSON look-alikes. The finish event's
`system_fingerprint` is the CRC-32 of the whole text (reasoning, then content), which reveals clients that lose or
change a byte. The first line of output is the port. `GET /served` returns the number of completions requested.
"""

from __future__ import annotations

import functools
import heapq
import json
import random
import select
import socket
import sys
import time
import zlib

from harness.testing import END, HEAD, chunk, http

VARIANTS = 16
TOKENS = [
    "the", " sum", " of", "\n", '"x"', "\\frac", " ∑", "🌱", " data:", "[DONE]", "}}", " 42", "é", "\t", " so", ",",
]  # fmt: skip
"""Texts of the tokens in replies."""


_ARGUMENTS = sys.argv[1:] if __name__ == "__main__" else []
DEFAULT_TOKENS = int(_ARGUMENTS[1]) if len(_ARGUMENTS) > 1 else 100
DEFAULT_STEP_MS = float(_ARGUMENTS[2]) if len(_ARGUMENTS) > 2 else 0.0


def frame(value: object) -> bytes:
    """An event of the stream as an HTTP chunk."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return chunk(f"data: {text}\n\n".encode())


@functools.lru_cache(64)
def reply(n: int, reasoning_percent: int, variant: int) -> tuple[bytes, ...]:
    """The parts of a streamed reply, to be sent in turn: head and role, `n` token events, closing events."""
    rng = random.Random(variant)
    tokens = [rng.choice(TOKENS) for _ in range(n)]

    def event(delta: dict[str, str], finish: str | None = None, **extra: object) -> bytes:
        """One event of a completion. extra: further fields of the event."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, "token_ids": None}
        head = {"id": f"chatcmpl-{variant:016x}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return frame(head | {"choices": [choice]} | extra)

    thinking = n * reasoning_percent // 100
    crc = f"crc-{zlib.crc32(''.join(tokens).encode()):08x}"
    usage = {"prompt_tokens": 9, "completion_tokens": n}
    closing = event({}, "stop", system_fingerprint=crc) + frame({"choices": [], "usage": usage}) + frame("[DONE]")
    return (
        HEAD + event({"role": "assistant", "content": ""}),
        *(event({"reasoning" if i < thinking else "content": token}) for i, token in enumerate(tokens)),
        closing + END,
    )


@functools.lru_cache(64)
def whole_reply(n: int, variant: int) -> tuple[bytes]:
    """A reply of `n` tokens that is not streamed."""
    rng = random.Random(variant)
    text = "".join(rng.choice(TOKENS) for _ in range(n))
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": n, "total_tokens": n + 9}
    head = {"id": f"chatcmpl-{variant:016x}", "object": "chat.completion", "created": 1, "model": "m"}
    crc = f"crc-{zlib.crc32(text.encode()):08x}"
    return (http(200, head | {"choices": [choice], "usage": usage, "system_fingerprint": crc}),)


class Connection:
    """The connection of one client, with the bytes of its request so far and the parts of the reply still to be
    sent.
    """

    completions = 0
    """Number of completions requested so far, over all connections."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.request = b""
        self.segments: tuple[bytes, ...] = ()
        self.next = 0
        self.variant = -1
        self.step = 0.0
        self.unsent = b""

    def received(self, data: bytes) -> bool:
        """Add bytes of the request; return whether the request is complete."""
        self.request += data
        end = self.request.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = self.request[:end].lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0]) if b"content-length:" in head else 0
        if len(self.request) < end + 4 + length:
            return False
        content = self.request[end + 4 : end + 4 + length]
        self.request = b""
        self.next = 0
        self.step = 0.0
        if not content:
            listed = head.startswith((b"get /v1/models ", b"get /models ", b"get /health "))
            if head.startswith(b"get /served "):
                self.segments = (http(200, {"completions": Connection.completions}),)
                return True
            models = {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "bench"}]}
            self.segments = (http(200, models) if listed else http(404, {"error": "not found"}),)
            return True
        Connection.completions += 1
        body = json.loads(content)
        fields = dict(part.split("=") for part in body["model"].split(",")[1:])
        n, variant = int(fields.get("n", DEFAULT_TOKENS)), (body.get("seed") or 0) % VARIANTS
        if variant == self.variant:  # no server repeats the id of the last reply, and clients may reject it
            variant = (variant + 1) % VARIANTS
        self.variant = variant
        if not body.get("stream"):
            self.segments = whole_reply(n, variant)
            return True
        self.segments = reply(n, int(fields.get("r", 0)), variant)
        self.step = float(fields.get("d", DEFAULT_STEP_MS)) / 1000
        if not self.step:
            self.segments = (b"".join(self.segments),)
        return True

    def send(self) -> bool:
        """Send the next part of the reply, or the rest of the last part; return whether the socket took all of it."""
        data = self.unsent or self.segments[self.next]
        if not self.unsent:
            self.next += 1
        try:
            sent = self.sock.send(data)
        except BlockingIOError:
            sent = 0
        self.unsent = data[sent:]
        return not self.unsent


def serve(port: int) -> None:
    """Print the port, then answer each request with its prepared segments until the process is killed.

    port: 0 selects a free port. There is a pause of `Connection.step` seconds between segments.
    """
    listener = socket.create_server(("127.0.0.1", port), backlog=20_000)
    listener.setblocking(False)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    epoll = select.epoll()
    epoll.register(listener, select.EPOLLIN)
    connections: dict[int, Connection] = {}
    # (time, descriptor, id of its connection, because descriptors are reused) for each upcoming segment
    due: list[tuple[float, int, int]] = []

    def close(fd: int) -> None:
        """Close a connection and forget it."""
        epoll.unregister(fd)
        connections.pop(fd).sock.close()

    def advance(fd: int, connection: Connection) -> None:
        """Send until the reply is complete, its next segment is not due yet, or the socket is full."""
        # Until the answer is whole, its next segment is not due yet, or the socket is full.
        while connection.send():
            if connection.next == len(connection.segments):
                return
            if connection.step:
                heapq.heappush(due, (time.monotonic() + connection.step, fd, id(connection)))
                return
        epoll.modify(fd, select.EPOLLIN | select.EPOLLOUT)

    while True:
        wait = max(0.0, due[0][0] - time.monotonic()) if due else -1
        for fd, mask in epoll.poll(wait):
            if fd == listener.fileno():
                while True:
                    try:
                        sock, _ = listener.accept()
                    except BlockingIOError:
                        break
                    sock.setblocking(False)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    connections[sock.fileno()] = Connection(sock)
                    epoll.register(sock.fileno(), select.EPOLLIN)
                continue
            connection = connections[fd]
            try:
                if mask & select.EPOLLOUT:
                    epoll.modify(fd, select.EPOLLIN)
                    advance(fd, connection)
                elif not (data := connection.sock.recv(65536)):
                    close(fd)
                elif connection.received(data):
                    advance(fd, connection)
            except OSError:
                close(fd)
        now = time.monotonic()
        while due and due[0][0] <= now:
            _, fd, whose = heapq.heappop(due)
            if id(connections.get(fd)) == whose:
                try:
                    advance(fd, connections[fd])
                except OSError:
                    close(fd)


if __name__ == "__main__":
    serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
