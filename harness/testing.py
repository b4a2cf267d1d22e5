"""A server on a real socket for tests: the OpenAI protocol, scripted replies, and byte-exact faults.

    with FakeServer(scripted(r"\\boxed{4}", faults=["429", "reset"])) as server:
        run = harness.run("demo:1", base_url=server.base_url, out="run")
    assert len(server.requests) > 2

`serving` answers with a function of the request, which returns a string, a `Said` (with reasoning, calls, a finish
reason) or the steps of a reply. Each API gets its own form, streamed or not:

    serving(lambda request: Said(f"seed {request.json['seed']}", finish="length"), "my-model", max_model_len=4096)

Steps are bytes to send as one segment, `Pause`, `STALL` (silent until the client disconnects), `CLOSE` or `RESET` (RST
instead of FIN). Each connection has its own thread, so a stalled reply does not affect the others. Not for measuring
speed.

Long: the replies of all APIs are kept together, along with the server that sends them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    """A pause of this many seconds."""

    seconds: float


Step = bytes | Pause | Act

METRICS_PAGES = ("/metrics", "/engine_metrics")
"""Pages that a client reads alongside its requests, on a separate connection."""


@dataclass(frozen=True)
class Request:
    """A request as received, with lower-case header names. number: its number, from 1, over all connections."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.body)

    @property
    def api(self) -> str:
        """The API of its path: chat, completions, responses or messages."""
        last = self.path.partition("?")[0].removesuffix("/completions").rpartition("/")[2]
        return last if last in _FORMS else "completions"


Answer = Callable[[Request], Iterable[Step]]


class FakeServer:
    """Answers each request with the steps that `answer` returns. A context manager; `stop` drops all connections.

    requests: the complete requests received, in order. connections: number of accepted connections. Both exclude the
    metrics page.
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
        """port: 0 chooses a free port. tls: certificate and key, for https. unix: path of a socket instead of an
        address. greeting: bytes sent at the start of each connection, before any request. metrics: answers requests for
        the page `/metrics`; None means that there is no such page (404). Raises `OSError` if the address is in use.
        """
        self.answer = answer
        self.greeting, self.metrics = greeting, metrics
        self.requests: list[Request] = []
        self.connections = 0
        self.aborted = 0
        """Number of replies whose client disconnected before their end."""
        self._tls = tls
        self._lock = threading.Lock()
        """Held while `requests` or `_open` changes, since each connection has its own thread."""
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
        """Accept no new connections, and reset the open ones."""
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
        """Give each connection a thread, until `stop`. Runs in the server's own thread."""
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer the requests of one connection until one side closes it. Runs in the connection's thread."""
        try:
            if connection.family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with self._lock:
                self._open.add(connection)
            if self._stopping.is_set():  # `stop` may have reset the open connections before this was one of them
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
        """The next request; None if the client disconnects before its end: `answer` gets only complete requests."""
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
        """Execute the steps of the answer; return whether the connection stays open for another request."""
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
                    return False  # the server is stopping, and an answer may stall forever
                elif step is RESET:
                    # With a linger time of 0 s, closing the socket sends RST.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return False
                else:  # CLOSE
                    return False
        except OSError:
            self.aborted += 1
            return False
        return True

    def wait_for(self, condition: Callable[[], bool], seconds: float = 240.0) -> bool:
        """Whether `condition` becomes true in time."""
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
    """A complete response with a Content-Length. Header names: `retry_after` → `Retry-After`."""
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
    # Half a character is escaped, as real servers do.
    return b"data: " + json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n\n"


def delta(
    text: str | None = None, *, finish: str | None = None, usage: Any = None, model: str = "test-model", **fields: Any
) -> bytes:
    """One event of a chat completion."""
    if text is not None:
        fields["content"] = text
    choice = {"index": 0, "delta": fields, "logprobs": None, "finish_reason": finish}
    value = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
    return event(value if usage is None else value | {"usage": usage})


def event_stream(*events: bytes, end: tuple[bytes, ...] = (DONE,)) -> Iterator[bytes]:
    """A complete chunked event stream, with one segment per event."""
    yield HEAD
    for each in (*events, *end):
        yield chunk(each)
    yield END


@dataclass(frozen=True)
class Said:
    """A model's output, which can be written in the form of any API.

    tokens, prompt_tokens: the numbers reported in its usage. finish: the chat API's finish reason. calls: (name,
    arguments) of each call. ids: IDs of the calls; by default call_0 and so on, starting after the highest number in
    the request.
    """

    text: str = "42"
    tokens: int = 3
    reasoning: str = ""
    finish: str = "stop"
    calls: tuple[tuple[str, str], ...] = ()
    model: str = "test-model"
    ids: tuple[str, ...] = ()
    prompt_tokens: int = 9

    def after(self, request: bytes) -> Said:
        """The same output with call IDs that do not occur in the body of the request."""
        if self.ids or not self.calls:
            return self
        first = 1 + max(map(int, re.findall(rb'"call_(\d{1,9})"', request)), default=-1)
        return replace(self, ids=tuple(f"call_{first + n}" for n in range(len(self.calls))))

    def whole(self, api: str = "chat") -> dict[str, Any]:
        """The non-streamed reply as one value. api: chat, completions, responses or messages."""
        return _FORMS[api][0](self)

    def events(self, api: str = "chat", size: int = 1) -> Iterator[bytes]:
        """The events of the reply. size: number of characters in each piece of its text."""
        pieces = (self.text[start : start + size] for start in range(0, len(self.text), size))
        return _FORMS[api][1](self, pieces)

    def steps(self, api: str = "chat", *, streamed: bool = True) -> Iterable[Step]:
        """The reply as sent. A stream consists of four segments: its head, its first event, its text, its end."""
        if not streamed:
            return [http(200, self.whole(api))]
        first, *middle, last, end = map(chunk, self.events(api))
        return iter([HEAD, first, b"".join(middle), b"".join([last, end, END])])


def completion(text: str = "42", tokens: int = 3) -> Iterable[Step]:
    """A well-behaved streamed reply of the chat API, with one event per character."""
    return Said(text, tokens).steps()


def _choice(said: Said, **choice: Any) -> dict[str, Any]:
    total = said.prompt_tokens + said.tokens
    usage = {"prompt_tokens": said.prompt_tokens, "completion_tokens": said.tokens, "total_tokens": total}
    choices = [{"index": 0, **choice, "finish_reason": said.finish}]
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": said.model, "choices": choices, "usage": usage}


def _calls(said: Said) -> list[dict[str, Any]]:
    """The calls in the chat API's form."""
    functions = [{"name": name, "arguments": arguments} for name, arguments in said.calls]
    ids = said.ids or [f"call_{n}" for n in range(len(functions))]
    called = enumerate(zip(ids, functions, strict=True))
    return [{"index": n, "id": each, "type": "function", "function": function} for n, (each, function) in called]


def _chat(said: Said) -> dict[str, Any]:
    more = {"reasoning_content": said.reasoning, "tool_calls": _calls(said)}
    given = {name: value for name, value in more.items() if value}
    return _choice(said, message={"role": "assistant", "content": said.text, **given})


def _chat_events(said: Said, pieces: Iterable[str]) -> Iterator[bytes]:
    yield delta(role="assistant", model=said.model)
    if said.reasoning:
        yield delta(reasoning_content=said.reasoning, model=said.model)
    yield from (_delta_of(piece, said.model) for piece in pieces)
    if said.calls:  # servers send an empty text with calls
        yield _delta_of("", said.model)
    for call in _calls(said):  # the arguments in two pieces
        name, arguments = call["function"].values()
        yield delta(tool_calls=[call | {"function": {"name": name, "arguments": arguments[:5]}}], model=said.model)
        yield delta(tool_calls=[{"index": call["index"], "function": {"arguments": arguments[5:]}}], model=said.model)
    usage = {"prompt_tokens": said.prompt_tokens, "completion_tokens": said.tokens}
    yield delta(finish=said.finish, usage=usage, model=said.model)
    yield DONE


@lru_cache(maxsize=1000)
def _delta_of(text: str, model: str) -> bytes:
    """The event for a piece of text; cached, since replies use few different characters."""
    return delta(text, model=model)


def _text(said: Said) -> dict[str, Any]:
    return _choice(said, text=said.text)


def _text_events(said: Said, pieces: Iterable[str]) -> Iterator[bytes]:
    yield from (event({"model": said.model, "choices": [{"index": 0, "text": piece}]}) for piece in pieces)
    yield event(_text(replace(said, text="")))
    yield DONE


def _response(said: Said) -> dict[str, Any]:
    status = "incomplete" if said.finish == "length" else "completed"
    thought = {"content": [{"type": "reasoning_text", "text": said.reasoning}], "encrypted_content": "sealed"}
    words = {"role": "assistant", "status": status, "content": [{"type": "output_text", "text": said.text}]}
    output: list[dict[str, Any]] = [{"id": "msg_1", "type": "message", **words}]
    if said.reasoning or said.calls:
        output.insert(0, {"type": "reasoning", **thought})
    output += [{"type": "function_call", "call_id": call["id"], **call["function"]} for call in _calls(said)]
    total = said.prompt_tokens + said.tokens
    usage = {"input_tokens": said.prompt_tokens, "output_tokens": said.tokens, "total_tokens": total}
    cut = {"incomplete_details": {"reason": "max_output_tokens"}} if said.finish == "length" else {}
    head = {"id": "resp_1", "object": "response", "status": status, "model": said.model}
    return {**head, **cut, "output": output, "usage": usage}


def _response_events(said: Said, pieces: Iterable[str]) -> Iterator[bytes]:
    end = _response(said)
    yield named("response.created", response=end | {"status": "in_progress", "output": []})
    for n, item in enumerate(end["output"]):
        place = {"output_index": n, "content_index": 0}
        yield named("response.output_item.added", output_index=n, item=item | {"content": []})
        if item["type"] == "message":
            yield named("response.content_part.added", **place, part={"type": "output_text", "text": ""})
            yield from (named("response.output_text.delta", **place, delta=piece) for piece in pieces)
            yield named("response.output_text.done", **place, text=said.text)
        elif item["type"] == "reasoning":
            yield named("response.reasoning_text.delta", **place, delta=said.reasoning)
        yield named("response.output_item.done", output_index=n, item=item)
    yield named("response.completed", response=end)


_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def _message(said: Said) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "thinking", "thinking": said.reasoning}] if said.reasoning else []
    content.append({"type": "text", "text": said.text})
    for call in _calls(said):
        name, arguments = call["function"].values()
        content.append({"type": "tool_use", "id": call["id"], "name": name, "input": _value_of(arguments)})
    usage = {"input_tokens": said.prompt_tokens, "output_tokens": said.tokens}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": said.model}
    return {**head, "stop_reason": _STOPS.get(said.finish, said.finish), "content": content, "usage": usage}


def _value_of(arguments: str) -> Any:
    """The arguments of a call as a value; unchanged if they are not JSON."""
    with contextlib.suppress(ValueError):
        return json.loads(arguments)
    return arguments


def _message_events(said: Said, pieces: Iterable[str]) -> Iterator[bytes]:
    end = _message(said)
    yield named("message_start", message=end | {"content": [], "stop_reason": None})
    yield named("ping")
    blocks: list[tuple[dict[str, Any], str, Iterable[str]]] = [
        *([({"type": "thinking", "thinking": ""}, "thinking", [said.reasoning])] if said.reasoning else []),
        ({"type": "text", "text": ""}, "text", pieces),
    ]
    for call in _calls(said):
        name, arguments = call["function"].values()
        start = {"type": "tool_use", "id": call["id"], "name": name, "input": {}}
        blocks.append((start, "partial_json", [arguments]))
    for n, (start, kind, parts) in enumerate(blocks):
        form = "input_json_delta" if kind == "partial_json" else f"{kind}_delta"
        yield named("content_block_start", index=n, content_block=start)
        yield from (named("content_block_delta", index=n, delta={"type": form, kind: part}) for part in parts)
        yield named("content_block_stop", index=n)
    yield named("message_delta", delta={"stop_reason": end["stop_reason"]}, usage={"output_tokens": said.tokens})
    yield named("message_stop")


_FORMS: dict[str, tuple[Callable[[Said], dict[str, Any]], Callable[[Said, Iterable[str]], Iterator[bytes]]]] = {
    "chat": (_chat, _chat_events),
    "completions": (_text, _text_events),
    "responses": (_response, _response_events),
    "messages": (_message, _message_events),
}
"""The end of an API's path, without `/completions` → functions that make its non-streamed reply and its events."""


def named(kind: str, **fields: Any) -> bytes:
    """One event that contains its type twice, as in both APIs."""
    return f"event: {kind}\n".encode() + event({"type": kind, **fields})


def models(*names: str, **extra: Any) -> bytes:
    """The response to GET /v1/models."""
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


Reply = str | Said | Iterable[Step]
"""The answer to a request: a string, an output with details, or the steps to take."""


def serving(
    reply: Reply | Callable[[Request], Reply],
    *names: str,
    pages: Mapping[str, Any] | None = None,
    **stated: Any,
) -> Answer:
    """An answer for `FakeServer`: the list of models, pages, and `reply` to each other request.

    reply: the reply to every request, or a function that makes it from the request. names: names of the models; by
    default `test-model`. pages: path → JSON value; no other pages exist. stated: additional fields of each model.
    """

    def answer(request: Request) -> Iterable[Step]:
        """The page, or the reply."""
        path = request.path.partition("?")[0]
        if pages and path in pages:
            return [http(200, pages[path])]
        if path.endswith("/models"):
            return [models(*names or ("test-model",), **stated)]
        if request.method == "GET":
            return [http(404, {})]
        said = reply(request) if callable(reply) else reply
        if isinstance(said, str):
            said = Said(said)
        if not isinstance(said, Said):
            return said
        return said.after(request.body).steps(request.api, streamed=bool(request.json.get("stream")))

    return answer


def scripted(*texts: str, faults: Sequence[str] = (), model: str = "test-model") -> Answer:
    """An answer for `FakeServer`: each given fault from `FAULTS` once, then the texts in turn, repeatedly.

    A request gets a streamed or non-streamed reply, as its body specifies, in the form of its path's API. The server
    lists `model`.

    Raises `ValueError` for an unknown fault.
    """
    if isinstance(faults, str) or not {*faults} <= FAULTS.keys():
        raise ValueError(f"faults={faults!r}: expected a list of names from {', '.join(FAULTS)}")
    said = itertools.cycle(Said(text, model=model) for text in texts)
    replies: Iterator[Reply] = itertools.chain((FAULTS[name] for name in faults), said)
    lock = threading.Lock()

    def reply(_: Request) -> Reply:
        with lock:
            return next(replies)

    return serving(reply, model)
