"""The floor of a client in Python: the least code that reads every reply right, for `bench/client.py`.

    python bench/floor.py PORT MODEL REQUESTS IN_FLIGHT

One epoll loop without asyncio, tasks or deadlines. Bytes are stored with a time stamp for each read, and a reply is
parsed when it is whole: one regular expression and one decoding of JSON, with a time stamp for each event. What it
leaves out: failures, limits of memory and time, event streams of any other form, bytes that nobody asked for. Prints a
JSON object with `cpu` and `wall` (s) and `crc_ok`, the replies that match their checksum.
"""

from __future__ import annotations

import json
import re
import resource
import select
import socket
import sys
import time
import zlib
from collections.abc import Callable

import msgspec

TICK_S, TICK_STREAMS, TICK_EVENTS = 0.002, 32, 64
"""The pause between two polls, with how many streams, below how many events."""

END_OF_FRAME = b"\n\n\r\n"
END_OF_BODY = b"0\r\n\r\n"
_between = re.compile(rb"\n\n\r\n[0-9a-f]+\r\ndata: ").sub


class Delta(msgspec.Struct):
    """The text that an event adds."""

    content: str | None = None
    reasoning: str | None = None


class Choice(msgspec.Struct):
    """The completion that an event continues."""

    delta: Delta
    finish_reason: str | None = None


class Usage(msgspec.Struct):
    """The token counts at the end of a stream."""

    completion_tokens: int


class Event(msgspec.Struct):
    """An event of a stream."""

    choices: list[Choice]
    system_fingerprint: str | None = None
    usage: Usage | None = None


_decode = msgspec.json.Decoder(list[Event]).decode


def read_reply(pieces: list[bytes], stamps: list[float]) -> tuple[str, str | None, int | None, list[float]]:
    """(text, fingerprint, completion tokens, the time of each event) of a whole reply.

    pieces: the reads. stamps: the time of each read.
    """
    raw = b"".join(pieces)
    body = raw[raw.index(b"data: ") + 6 : raw.rindex(b"data: [DONE]")]
    # A line end cannot stand in a JSON string, so what is replaced is between two events.
    events = _decode(b"[%b]" % _between(b",", body[: body.rindex(END_OF_FRAME)]))
    times: list[float] = []
    for piece, stamp in zip(pieces, stamps, strict=True):
        times += [stamp] * piece.count(END_OF_FRAME)
    deltas = [event.choices[0].delta for event in events if event.choices]
    text = "".join([delta.reasoning for delta in deltas if delta.reasoning])
    text += "".join([delta.content for delta in deltas if delta.content])
    fingerprint = next((event.system_fingerprint for event in reversed(events) if event.system_fingerprint), None)
    usage = events[-1].usage
    return text, fingerprint, usage.completion_tokens if usage else None, times


def run(port: int, model: str, requests: int, in_flight: int) -> int:
    """Send `requests` requests, `in_flight` at once; return how many replies match their checksum."""
    body = b'{"model":"%b","messages":[{"role":"user","content":"hi"}],"seed":%%d,"stream":true,"stream_options":{%b}}'
    body %= (model.encode(), b'"include_usage":true')
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b"
    poll = select.epoll()
    streams: dict[int, tuple[Callable[[int], bytes], list[bytes], list[float], socket.socket]] = {}
    n_sent = n_done = n_right = 0

    def send(sock: socket.socket) -> None:
        """Send the next request over this connection."""
        nonlocal n_sent
        text = body % n_sent
        streams[sock.fileno()] = sock.recv, [], [], sock
        sock.send(head % (len(text), text))
        n_sent += 1

    for _ in range(min(in_flight, requests)):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setblocking(False)
        poll.register(sock.fileno(), select.EPOLLIN)
        send(sock)
    while n_done < requests:
        ready = poll.poll(-1, 4096)
        now = time.monotonic()
        for fd, _ in ready:
            receive, pieces, stamps, sock = streams[fd]
            data = receive(65536)
            pieces.append(data)
            stamps.append(now)
            if data[-5:] != END_OF_BODY:
                if not data:
                    raise ConnectionError("the server closed a connection")
                continue
            text, fingerprint, _, _ = read_reply(pieces, stamps)
            n_right += fingerprint == f"crc-{zlib.crc32(text.encode()):08x}"
            n_done += 1
            if n_sent < requests:
                send(sock)
            else:
                poll.unregister(fd)
        if len(ready) < TICK_EVENTS and in_flight >= TICK_STREAMS:
            time.sleep(TICK_S)
    return n_right


def main() -> None:
    """Measure one case and print it."""
    port, model, requests, in_flight = sys.argv[1:]
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    n_right = run(int(port), model, int(requests), int(in_flight))
    after, wall = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter() - began
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sys.stdout.write(json.dumps({"cpu": spent, "wall": wall, "crc_ok": n_right}) + "\n")


if __name__ == "__main__":
    main()
