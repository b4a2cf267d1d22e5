"""A server on a real socket for tests: the OpenAI protocol, scripted replies, and faults to the byte.

    with FakeServer(scripted(r"\\boxed{4}", faults=["429", "reset"])) as server:
        run = harness.run("demo:1", base_url=server.base_url, out="run")
    assert len(server.requests) > 2

An answer of one's own yields the steps of each reply: bytes to send as one segment, `Pause`, `STALL` (silent until the
client leaves), `CLOSE` or `RESET` (RST instead of FIN). One thread a connection, so that a stalled reply disturbs no
other. Not for measuring speed.

Long: the replies of each API stand beside each other, and beside the server that sends them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, Self


class Act(Enum):
    """What a connection does instead of sending."""

    STALL = "stall"
    CLOSE = "close"
    RESET = "reset"


STALL, CLOSE, RESET = Act.STALL, Act.CLOSE, Act.RESET


class Pause(NamedTuple):
    """Silence for so many seconds."""

    seconds: float


Step = bytes | Pause | Act

METRICS_PAGES = ("/metrics", "/engine_metrics")
"""Pages that a client reads beside its requests, on a connection of its own."""


@dataclass(frozen=True)
class Request:
    """A request as it came; header names in lower case. number: from 1, over all connections."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.body)


Answer = Callable[[Request], Iterable[Step]]


class FakeServer:
    """Answers each request with the steps that `answer` gives. A context manager; `stop` drops all connections.

    requests: the whole requests that came, in their order. connections: number of connections that were accepted. Both
    leave out those of the metrics page.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        unix: str | None = None,
        greeting: bytes = b"",
        metrics: Answer | None = None,
    ) -> None:
        """port: 0 takes a free one. tls: certificate and key, for https. unix: path of a socket instead of an address.
        greeting: bytes that each connection begins with, before any request. metrics: answers a request for the page
        `/metrics`; None: there is none (404). Raises `OSError` for an address in use.
        """
        self.answer = answer
        self.greeting, self.metrics = greeting, metrics
        self.requests: list[Request] = []
        self.connections = 0
        self.aborted = 0
        """Replies whose client left before their end."""
        self._tls = tls
        self._lock = threading.Lock()
        """Held while `requests` or `_open` change: each connection has a thread."""
        self._open: set[socket.socket] = set()
        """The connections that `stop` resets."""
        if unix is not None:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(unix)
            self._listener.listen(1024)
            self.base_url = f"unix:{unix}"
        else:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._listener = socket.create_server((host, port), family=family, backlog=1024)
            self.port: int = self._listener.getsockname()[1]
            scheme = "https" if tls else "http"
            self.base_url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}/v1"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """No new connections; those open are reset."""
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join(5)

    def _accept(self) -> None:
        """Give each connection a thread, until `stop`; the program of the server's own thread."""
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer the requests of one connection until one side closes it; the program of its thread."""
        try:
            if connection.family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with self._lock:
                self._open.add(connection)
            if self._stopping.is_set():  # `stop` may have reset the open ones before this was among them
                return
            if self.greeting:
                connection.sendall(self.greeting)
            with connection.makefile("rb") as incoming:
                first = True
                while (request := self._receive(incoming)) is not None:
                    if first and request.path in METRICS_PAGES:
                        self.connections -= 1
                    first = False
                    if not self._reply(connection, request):
                        return
        except (OSError, ValueError):
            return
        finally:
            with self._lock:
                self._open.discard(connection)
            with contextlib.suppress(OSError):
                connection.close()

    def _receive(self, incoming: Any) -> Request | None:
        """The next request; None if the client has left, also in the middle of one: `answer` sees whole requests."""
        line = incoming.readline(65536)
        if not line:
            return None
        method, path, _ = line.decode("latin-1").split(" ", 2)
        headers: dict[str, str] = {}
        while (line := incoming.readline(65536)) != b"\r\n":
            if not line.endswith(b"\n"):
                return None
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        length = int(headers.get("content-length", 0))
        body = incoming.read(length)
        if len(body) < length:
            return None
        with self._lock:
            request = Request(len(self.requests) + 1, method, path, headers, body)
            if path not in METRICS_PAGES:
                self.requests.append(request)
        return request

    def _reply(self, connection: socket.socket, request: Request) -> bool:
        """Carry out the steps of the answer; return whether the connection stays open for another request."""
        try:
            answer = self.answer
            if request.path in METRICS_PAGES:
                answer = self.metrics or (lambda _: [http(404)])
            for step in answer(request):
                if isinstance(step, Pause):
                    if self._stopping.wait(step.seconds) or _has_left(connection):
                        raise ConnectionAbortedError
                elif isinstance(step, bytes):
                    connection.sendall(step)
                elif step is STALL:
                    while not self._stopping.wait(0.01):
                        if _has_left(connection):
                            raise ConnectionAbortedError
                    return False  # the server stops, and an answer may stall for ever
                elif step is RESET:
                    # With a linger of 0 s, closing the socket sends RST.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return False
                else:  # CLOSE
                    return False
        except OSError:
            self.aborted += 1
            return False
        return True

    def wait_for(self, condition: Callable[[], bool], seconds: float = 240.0) -> bool:
        """Whether `condition` comes true in time."""
        due = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > due:
                return False
            time.sleep(0.005)
        return True


def _has_left(connection: socket.socket) -> bool:
    """Whether the client closed its side; False over https, where looking ahead is not possible."""
    if isinstance(connection, ssl.SSLSocket):
        return False
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connection.setblocking(True)


# -- replies --------------------------------------------------------------------------------------------------------


def http(status: int, body: bytes | dict[str, Any] = b"", **headers: str) -> bytes:
    """A whole response with a Content-Length. Header names: `retry_after` → `Retry-After`."""
    if isinstance(body, dict):
        body = json.dumps(body).encode()
        headers.setdefault("content_type", "application/json")
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-').title()}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def chunk(body: bytes) -> bytes:
    """One chunk of a chunked body."""
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


def event(value: Any) -> bytes:
    """One server-sent event."""
    if isinstance(value, bytes):
        return b"data: " + value + b"\n\n"
    # Half a character is escaped, as servers do.
    return b"data: " + json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n\n"


def delta(text: str | None = None, *, finish: str | None = None, usage: Any = None, **fields: Any) -> bytes:
    """One event of a chat completion."""
    if text is not None:
        fields["content"] = text
    value: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "test-model",
        "choices": [{"index": 0, "delta": fields, "logprobs": None, "finish_reason": finish}],
    }
    if usage is not None:
        value["usage"] = usage
    return event(value)


def event_stream(*events: bytes, end: tuple[bytes, ...] = (DONE,)) -> Iterator[bytes]:
    """A whole chunked event stream, a segment an event."""
    yield HEAD
    for each in (*events, *end):
        yield chunk(each)
    yield END


def completion(text: str = "42", tokens: int = 3) -> Iterator[bytes]:
    """A well-behaved reply, an event a letter: its head, its role, its text and its end, each in a segment."""
    last = delta(finish="stop", usage={"prompt_tokens": 9, "completion_tokens": tokens})
    yield HEAD
    yield chunk(delta(role="assistant"))
    yield b"".join(chunk(_delta_of(letter)) for letter in text)  # one segment
    yield b"".join([chunk(last), chunk(DONE), END])


_delta_of = lru_cache(maxsize=1000)(delta)
"""The event of a piece of text; remembered, since replies are made of few letters."""


def response(text: str = "42", status: str = "completed", model: str = "test-model") -> dict[str, Any]:
    """A whole reply of the Responses API."""
    content = [{"type": "output_text", "text": text}]
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": content}
    usage = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}
    named = {"id": "resp_1", "object": "response", "status": status, "model": model}
    return {**named, "output": [item] if status == "completed" else [], "usage": usage}


def response_events(text: str = "42", model: str = "test-model") -> Iterator[bytes]:
    """The events of that reply, a letter a piece."""
    place, end = {"output_index": 0, "content_index": 0}, response(text, model=model)
    yield named("response.created", response=response(text, "in_progress", model))
    yield named("response.output_item.added", output_index=0, item={"type": "message", "content": []})
    yield from (named("response.output_text.delta", **place, delta=letter) for letter in text)
    yield named("response.output_text.done", **place, text=text)
    yield named("response.output_item.done", output_index=0, item=end["output"][0])
    yield named("response.completed", response=end)


def message(text: str = "42", model: str = "test-model") -> dict[str, Any]:
    """A whole reply of the Messages API."""
    of_text = {"content": [{"type": "text", "text": text}], "usage": {"input_tokens": 9, "output_tokens": 3}}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn", **of_text}


def message_events(text: str = "42", model: str = "test-model") -> Iterator[bytes]:
    """The events of that reply, a letter a piece."""
    yield named("message_start", message=message(text, model) | {"content": [], "stop_reason": None})
    yield named("ping")
    yield named("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield from (named("content_block_delta", index=0, delta={"type": "text_delta", "text": part}) for part in text)
    yield named("content_block_stop", index=0)
    yield named("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3})
    yield named("message_stop")


def named(kind: str, **fields: Any) -> bytes:
    """One event that states its type twice, as both APIs do."""
    return f"event: {kind}\n".encode() + event({"type": kind, **fields})


def models(*names: str, **extra: Any) -> bytes:
    """The answer to GET /v1/models."""
    return http(200, {"object": "list", "data": [{"id": name, "object": "model", **extra} for name in names]})


FAULTS: Mapping[str, tuple[Step, ...]] = {
    "500": (http(500, {"error": {"message": "prompt must be a string"}}),),
    "502": (http(502, b"bad gateway"),),
    "429": (http(429, {"error": {"message": "slow down"}}),),
    "reset": (RESET,),
    "silence": (STALL,),
    "empty": (http(200, b"", content_type="text/event-stream"),),
}
"""Failures by name: statuses, a connection reset before the reply, one that stays silent, a stream without an event."""


def scripted(*texts: str, faults: Sequence[str] = (), model: str = "test-model") -> Answer:
    """An answer for `FakeServer`: each fault of `FAULTS` once, then the texts in turn, over and over.

    A request gets a stream or a whole reply, as its body asks, of the API of its path. The server lists `model`.

    Raises `ValueError` for a fault of another name.
    """
    if isinstance(faults, str) or not {*faults} <= FAULTS.keys():
        raise ValueError(f"faults={faults!r}: expected a list of names out of {', '.join(FAULTS)}")
    failures = iter([FAULTS[name] for name in faults])
    replies = itertools.cycle(texts)
    lock = threading.Lock()

    def answer(request: Request) -> Iterable[Step]:
        """The model list, then the faults, then the texts."""
        if request.method == "GET":
            return [models(model) if request.path.endswith("/models") else http(404)]
        with lock:
            failure = next(failures, None)
            text = "" if failure else next(replies)
        if failure:
            return failure
        streamed = request.json.get("stream")
        for path, events, whole in (("/responses", response_events, response), ("/messages", message_events, message)):
            if request.path.endswith(path):
                reply = whole(text, model=model)
                return event_stream(*events(text, model), end=()) if streamed else [http(200, reply)]
        if streamed:
            return completion(text)
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        return [http(200, {"object": "chat.completion", "model": model, "choices": [choice], "usage": usage})]

    return answer
