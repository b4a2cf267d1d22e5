"""Bytes of one response body → one `Reply`. Pure: no I/O, no clock of its own.

What it reads: server-sent events of the chat and completions APIs as real servers send them (role-only first event,
text in the event that carries the finish reason, `reasoning_content` or `reasoning`, usage anywhere, error events
inside a 200, comments, CRLF, no `[DONE]`), and whole JSON bodies. What decides: a reply is complete when a finish
reason came. Anything else is a `RequestFailed`, whatever the bytes; splits of the bytes never change the outcome.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from harness.client.address.redact import redacted
from harness.client.protocol.failures import failed_event
from harness.client.protocol.plain_event import PlainEvent, decode_plain_event
from harness.client.protocol.reply import FailureKind, Reply, RequestFailed
from harness.client.protocol.usage import usage_of
from harness.core import codec
from harness.core.inert import quoted
from harness.core.records import Timing

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""Longest event; tokens take hundreds of bytes, with log-probabilities thousands."""

MAX_PARTIAL_CHARS = 4000
"""How much of a failed reply's text (its end) is kept for diagnosis."""

_SNIPPET_BYTES = 400
_JOIN_AT = 256
"""Token texts are joined in blocks of this many: a list of 8,000 short strings takes 15 times the memory."""

_NOT_FINISHED = frozenset({"abort", "error", "insufficient_system_resource"})
"""Finish reasons by which SGLang, OpenRouter and DeepSeek say that they gave up on the request."""

_BOM = b"\xef\xbb\xbf"
_decode = msgspec.json.Decoder().decode


class ReplyParser:
    """Incremental reader of one response body.

    started: when the request was sent, seconds on the clock whose readings `feed` is given; started_utc: the same
    instant as Unix time. clock: where those readings come from. secrets: never shown in messages.
    """

    __slots__ = (
        "_at", "_body", "_bytes", "_chunks", "_data", "_done", "_event_name", "_events", "_failure", "_fingerprint",
        "_finish", "_halves", "_held", "_held_bytes", "_max_bytes", "_mode", "_notes", "_seen",
        "_server_model", "_snippet", "_stamps", "_started_utc", "_usage", "clock", "request_id", "secrets", "started",
    )  # fmt: skip

    def __init__(
        self,
        *,
        started: float,
        started_utc: float,
        max_body_bytes: int,
        request_id: str | None = None,
        clock: Literal["kernel", "user"] = "user",
        secrets: Iterable[str] = (),
    ) -> None:
        self.clock: Literal["kernel", "user"] = clock
        self.started = started
        self._started_utc = started_utc
        self._max_bytes = max_body_bytes
        self.request_id = request_id
        self.secrets = tuple(secrets)
        self._mode: Literal["", "events", "json"] = ""
        self._bytes = 0
        self._at = started
        self._held: list[bytes] = []  # the unfinished line (events) or the body so far (json)
        self._held_bytes = 0
        self._data: list[bytes] = []  # data lines of the event under way
        self._event_name = b""
        self._events = 0
        self._snippet = b""
        self._body = ([], [])  # type: tuple[list[str], list[str]]  # text, reasoning: the latest pieces
        self._chunks = ([], [])  # type: tuple[list[str], list[str]]  # text, reasoning: joined blocks
        self._seen = [False, False]  # a string came, even an empty one
        self._stamps = array("d")
        self._finish: str | None = None
        self._usage: dict[str, Any] | None = None
        self._server_model: str | None = None
        self._fingerprint: str | None = None
        self._notes: list[str] = []
        self._halves = False  # lone surrogates may have come
        self._done = False
        self._failure: RequestFailed | None = None

    @property
    def done(self) -> bool:
        """`[DONE]` came: nothing that follows matters."""
        return self._done

    @property
    def finished(self) -> bool:
        """A finish reason came: the reply is complete, though usage may follow."""
        return self._finish is not None

    @property
    def last_token_at(self) -> float | None:
        """When the latest token came, on the clock of `feed`; None before the first."""
        return self._stamps[-1] if self._stamps else None

    @property
    def is_event_stream(self) -> bool:
        """Events came, not a whole JSON body."""
        return self._mode == "events"

    @property
    def at_event_border(self) -> bool:
        """The next byte begins an event."""
        return self._mode != "json" and not self._held and not self._data and not self._event_name

    def feed(self, data: bytes, at: float) -> None:
        """The next bytes of the body, received at `at`. Raises `RequestFailed` as soon as the reply cannot be had."""
        if self._failure is not None:
            raise self._failure
        if self._done:
            return
        self._at = at
        self._bytes += len(data)
        over = self._bytes - self._max_bytes
        if over > 0:
            data = data[: max(0, len(data) - over)]
        if not self._mode:
            data = self._sniff(data)
        if self._mode == "events":
            self._read(data)
        elif self._mode == "json":
            self._held.append(data)
        if over > 0 and not self._done:
            raise self._fail("runaway", f"the reply exceeds {self._max_bytes} bytes; max_tokens seems to be ignored")

    def feed_event(self, data: bytes, at: float) -> None:
        """As `feed` of an event that is `data`, a JSON object on one line. The parser stands at an event's border."""
        if self._failure is not None or self._done or self._bytes + len(data) + 8 > self._max_bytes:
            self.feed(b"data: %b\n\n" % data, at)
            return
        self._mode = "events"
        self._bytes += len(data) + 8
        self._at = at
        self._dispatch(data)

    def feed_tokens(self, texts: Sequence[str], stamps: Sequence[float], *, reasoning: bool, n_bytes: int) -> None:
        """Token texts that a batch reader took out of `n_bytes` of whole events, with the time each event came.

        The parser stands at an event's border. Raises `RequestFailed`.
        """
        if self._failure is not None:
            raise self._failure
        if self._done:
            return
        self._mode = "events"
        self._chunks[reasoning].append("".join([*self._body[reasoning], *texts]))
        self._body[reasoning].clear()
        self._seen[reasoning] = True
        self._stamps.extend(stamps if all(texts) else [at for text, at in zip(texts, stamps, strict=True) if text])
        self._at = stamps[-1]
        self._bytes += n_bytes
        if self._bytes > self._max_bytes:
            raise self._fail("runaway", f"the reply exceeds {self._max_bytes} bytes; max_tokens seems to be ignored")

    def finish(self, at: float | None = None, cut: str = "") -> Reply:
        """The reply, at the end of the body. `cut`: why the body ended, if not cleanly. Raises `RequestFailed`."""
        if self._failure is not None:
            raise self._failure
        if at is not None and not self._done:
            self._at = at
        if self._mode == "json":
            self._read_json(cut)
        elif not self._done:
            self._read_rest(cut)
        if self._finish is None:
            raise self._fail(*self._why_unfinished(cut))
        if cut:
            self._notes.append(f"cut after the finish reason: {quoted(cut)}")
        if self._mode == "events" and not self._done:
            self._notes.append("no [DONE]")
        if self._finish in _NOT_FINISHED:
            raise self._fail("server", f"the server gave up on the request (finish_reason {self._finish!r})")
        text, reasoning = self._text(0), self._text(1)
        return Reply(
            text=text,
            reasoning=reasoning,
            finish_reason=self._finish,
            usage=usage_of(self._usage, has_text=bool(text or reasoning), has_reasoning=bool(reasoning)),
            timing=self._timing(),
            server_model=self._server_model,
            fingerprint=self._fingerprint,
            request_id=self.request_id,
            notes=tuple(self._notes),
        )

    # -- lines and events ----------------------------------------------------------------------------------------

    def _sniff(self, data: bytes) -> bytes:
        """Decide by the first byte that says something, whatever the content type claims; returns what to read."""
        if self._held:
            data = b"".join(self._held) + data
            self._held.clear()
        head = data.lstrip(b" \t\r\n")
        if len(head) < len(_BOM) and _BOM.startswith(head):
            if head:
                self._held.append(head)
            return b""
        head = head.removeprefix(_BOM)
        self._mode = "json" if head[:1] in (b"{", b"[") else "events"
        return head

    def _read(self, data: bytes) -> None:
        if not self._events and len(self._snippet) < _SNIPPET_BYTES:
            self._snippet += data[: _SNIPPET_BYTES - len(self._snippet)]
        end = data.rfind(b"\n") + 1
        if end:
            block = data[:end]
            if self._held:
                self._held.append(block)
                block = b"".join(self._held)
                self._held.clear()
                self._held_bytes = 0
            self._read_lines(block)
            if self._done:
                return
            data = data[end:]
        if data:
            self._held.append(data)
            self._held_bytes += len(data)
            if self._held_bytes > MAX_EVENT_BYTES:
                raise self._fail("malformed", f"a line of the reply exceeds {MAX_EVENT_BYTES} bytes")

    def _read_lines(self, block: bytes) -> None:
        """Whole lines. An event of one data line, which nearly all are, needs no look at its lines."""
        parts = block.split(b"\n\n")
        last = parts.pop()
        at_border = not self._data and not self._event_name
        for part in parts:
            if at_border and part[:7] == b"data: {" and b"\n" not in part and len(part) <= MAX_EVENT_BYTES:
                self._dispatch(part[6:])
            else:
                for line in part.split(b"\n"):
                    self._line(line)
                self._line(b"")
                at_border = True
            if self._done:
                return
        for line in last.split(b"\n")[:-1]:
            self._line(line)

    def _line(self, line: bytes) -> None:
        if self._done:
            return
        if line[-1:] == b"\r":
            line = line[:-1]
        if not line:
            if self._data:
                self._dispatch_lines()
            self._event_name = b""
            return
        if len(line) > MAX_EVENT_BYTES:
            raise self._fail("malformed", f"a line of the reply exceeds {MAX_EVENT_BYTES} bytes")
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            if len(self._data) > 1 and sum(map(len, self._data)) > MAX_EVENT_BYTES:
                raise self._fail("malformed", f"an event of the reply exceeds {MAX_EVENT_BYTES} bytes")
        elif line.startswith(b"event:"):
            self._event_name = line[6:].strip()
        elif line.startswith(b"error:"):  # older llama.cpp servers
            self._event_name = b"error"
            self._data.append(line[6:])

    def _dispatch_lines(self) -> None:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        self._data.clear()
        self._dispatch(data)

    def _dispatch(self, data: bytes) -> None:
        if len(data) < 64 and data.strip() == b"[DONE]":
            self._done = True
            return
        if not self._event_name:
            try:
                plain = decode_plain_event(data)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass
            else:
                self._events += 1
                self._plain_event(plain)
                return
        try:
            value = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = self._decode_slowly(data)
        self._events += 1
        if type(value) is not dict:
            if self._event_name == b"error":
                raise self._failed(failed_event(value, self.secrets, self._partial()))
            raise self._fail("malformed", f"an event of the stream is no JSON object: {self._quoted(data)}")
        self._event(value)

    def _decode_slowly(self, data: bytes) -> Any:
        """Lone surrogates, which strict decoders refuse, and plain words in an error event."""
        try:
            value: Any = codec.decode(data)
            self._halves = True
            return value
        except codec.DecodeError as error:
            if self._event_name == b"error":
                return data.decode("utf-8", "replace").strip()
            if not data.strip():
                return {}
            message = f"an event of the stream is not JSON ({error}): {self._quoted(data)}"
            raise self._fail("malformed", message) from error

    def _plain_event(self, event: PlainEvent) -> None:
        if event.usage is not None:
            self._usage = event.usage
        if self._server_model is None:
            self._server_model = event.model or None
            self.request_id = event.id or self.request_id
        if event.system_fingerprint:
            self._fingerprint = event.system_fingerprint
        for choice in event.choices:
            delta = choice.delta
            came = False
            if delta.content is not None:
                came = self._take(0, delta.content)
            reasoned = delta.reasoning_content is not None and self._take(1, delta.reasoning_content)
            if not reasoned and delta.reasoning is not None:
                reasoned = self._take(1, delta.reasoning)
            came |= reasoned
            if came:
                self._stamps.append(self._at)
            if choice.finish_reason:
                self._finish = choice.finish_reason

    def _event(self, value: dict[str, Any]) -> None:
        choices = value.get("choices")
        if value.get("error") or self._event_name == b"error" or (choices is None and _is_error(value)):
            raise self._failed(failed_event(value, self.secrets, self._partial()))
        usage = value.get("usage")
        if type(usage) is dict:
            self._usage = usage
        if self._server_model is None:
            self._server_model = _string(value.get("model"))
            self.request_id = _string(value.get("id")) or self.request_id
        fingerprint = value.get("system_fingerprint")
        if fingerprint and type(fingerprint) is str:
            self._fingerprint = fingerprint
        if type(choices) is list:
            for choice in choices:
                # One completion a request: other indices belong to a caller who asked for n > 1.
                if type(choice) is dict and choice.get("index") in (0, None):
                    self._choice(choice)

    def _choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta")
        if type(delta) is not dict:
            delta = choice.get("message")
        came = False
        reasoned = False  # some servers send a reasoning under both names, or one of them empty
        if type(delta) is dict:
            for name, piece in delta.items():
                if name == "content":
                    if type(piece) is str:
                        came |= self._take(0, piece)
                    elif type(piece) is list:
                        for is_reasoning, part in _parts(piece):
                            came |= self._take(is_reasoning, part)
                elif name == "refusal" and piece:
                    self._note("refusal")
                elif name == "tool_calls" and piece:
                    self._note("tool call")
            for name in ("reasoning_content", "reasoning"):
                if type(piece := delta.get(name)) is str and not reasoned:
                    reasoned = self._take(1, piece)
            came |= reasoned
        text = choice.get("text")
        if type(text) is str:
            came |= self._take(0, text)
        if came:
            self._stamps.append(self._at)
        reason = choice.get("finish_reason")
        if reason and type(reason) is str:
            self._finish = reason

    def _take(self, which: int, piece: str) -> bool:
        self._seen[which] = True
        if not piece:
            return False
        pieces = self._body[which]
        pieces.append(piece)
        if len(pieces) >= _JOIN_AT:
            self._chunks[which].append("".join(pieces))
            pieces.clear()
        return True

    # -- the end -------------------------------------------------------------------------------------------------

    def _read_rest(self, cut: str) -> None:
        """A last line without a line end, a last event without a blank line: taken if whole, else the cut."""
        if self._mode != "events":
            return
        rest = b"".join(self._held)
        self._held.clear()
        try:
            if rest:
                self._line(rest)
            if self._data and not self._done:
                self._dispatch_lines()
        except RequestFailed as failure:
            if failure.kind != "malformed":
                raise
            self._failure = None
            if self._finish is None:
                raise self._fail("cut", f"the stream ended inside an event ({quoted(cut) or 'cleanly'})") from None

    def _read_json(self, cut: str) -> None:
        data = b"".join(self._held)
        self._held.clear()
        self._mode = "json"
        self._halves = True
        try:
            value: Any = codec.decode(data)
        except codec.DecodeError as error:
            kind: FailureKind = "cut" if cut else "malformed"
            raise self._fail(kind, f"the reply is not JSON ({cut or error}): {self._quoted(data)}") from error
        if type(value) is list and value and type(value[0]) is dict:
            value = value[0]
        if type(value) is not dict or not (value.get("choices") or value.get("error") or _is_error(value)):
            raise self._fail("malformed", f"the reply is no completion: {self._quoted(data)}")
        self._event(value)

    def _why_unfinished(self, cut: str) -> tuple[FailureKind, str]:
        if not self._bytes:
            return "cut", f"the reply is empty{f' ({quoted(cut)})' if cut else ''}"
        if self._mode == "events" and not self._events and not self._done and not cut:
            return "malformed", f"not an event stream: {self._quoted(self._snippet)}"
        how = quoted(cut) if cut else "[DONE] came all the same" if self._done else "the body ended cleanly"
        return "cut", f"the reply ended without a finish reason ({how}, {len(self._stamps)} token events)"

    def failed(self, kind: FailureKind, message: str) -> RequestFailed:
        """A failure that the transport saw (a deadline), with the text so far."""
        return RequestFailed(kind, quoted(redacted(message, self.secrets)), partial_text=self._partial())

    def _fail(self, kind: FailureKind, message: str) -> RequestFailed:
        return self._failed(RequestFailed(kind, redacted(message, self.secrets), partial_text=self._partial()))

    def _failed(self, failure: RequestFailed) -> RequestFailed:
        self._failure = failure
        return failure

    def _quoted(self, data: bytes) -> str:
        return quoted(redacted(data[:2000].decode("utf-8", "replace"), self.secrets)) or "nothing"

    def _note(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)

    def _text(self, which: int) -> str | None:
        if not self._seen[which]:
            return None
        text = "".join([*self._chunks[which], *self._body[which]])
        if self._halves:  # halves of one character in two events meet here; a lone half stays
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text

    def _partial(self) -> str:
        text = "".join([*self._chunks[1], *self._body[1], *self._chunks[0], *self._body[0]])
        return redacted(text, self.secrets)[-MAX_PARTIAL_CHARS:]

    def _timing(self) -> Timing:
        stamps = self._stamps
        gaps = sorted(map(float.__sub__, stamps[1:], stamps))
        return Timing(
            started=self._started_utc,
            first_token=stamps[0] - self.started if stamps else None,
            last_token=stamps[-1] - self.started if stamps else None,
            total=self._at - self.started,
            gap_p50=gaps[len(gaps) // 2] if gaps else None,
            gap_p99=gaps[min(len(gaps) - 1, int(len(gaps) * 0.99))] if gaps else None,
            events=len(stamps),
            clock=self.clock,
        )


def _is_error(value: dict[str, Any]) -> bool:
    """SGLang's top-level error object, FastAPI's `detail`."""
    return value.get("object") == "error" or bool(value.get("detail"))


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _parts(content: list[Any]) -> Iterable[tuple[bool, str]]:
    """(is reasoning, text) of content sent as typed parts, as Mistral's reasoning models do."""
    for part in content:
        if isinstance(part, dict):
            thinking = part.get("thinking")
            if isinstance(thinking, str):
                yield True, thinking
            elif isinstance(thinking, list):
                yield from ((True, piece) for _, piece in _parts(thinking))
            text = part.get("text")
            if isinstance(text, str):
                yield False, text
