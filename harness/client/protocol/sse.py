"""The reply parser: bytes of a response body → one `Reply`, or a `RequestFailed`. No I/O, no clock.

The parser reads server-sent events of the chat and completions APIs as real servers send them: a first event with a
role only, text in the event with the finish reason, `reasoning_content` or `reasoning`, usage in any event, error
events inside a status 200, comments, CRLF, no `[DONE]`. It also reads a body that is one JSON value. A reply is
complete once it has a finish reason; without one it is a `RequestFailed`. How the bytes are split never changes the
outcome.

    state      the next bytes are                     left when
    undecided  blanks or part of a byte order mark    another byte comes: `{`, `[` or `"` → json, else → events
    events     server-sent events                     `[DONE]` → done; unreadable bytes → failed; the body ends;
                                                      the first line is not a field → json
    json       pieces of one JSON value, or words     the body ends
    done       ignored (noted if not blank)           the body ends
    failed     rejected with the same failure         never, except for a fault in a rest that was cut off

The path of a byte through the state `events`, with the buffers:

    read ──▶ _partial        ──▶ line ──▶ _data             ──▶ event ──▶ reader    ──▶ Completion
             unfinished line              data lines of the               of the API:   checks the event and adds it
             (json: the body)             unfinished event                an `Event`    to the reply, or fails the reply

A line must be blank, a comment, or one of the fields `data`, `event`, `id`, `retry`, `error`. Before the finish reason,
any other line fails the reply, since part of the answer may be hidden in it (an event after a byte order mark, for
example); after the finish reason it is noted.

Whatever contains no part of a reply is a message from the server: a whole body at once, an event once the stream has
ended without a finish reason. It fails the reply in the server's words.

Long: this module is one state machine, which reads every form of a body.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from harness.client.address.endpoint import quote_safely
from harness.client.apis.api import API, BadEvent, Event
from harness.client.apis.table import APIS
from harness.client.apis.values import is_error, object_of
from harness.client.protocol.failures import FailureKind, RequestFailed, failure_of_event
from harness.client.protocol.reply import Completion, Reply, with_final_texts, without_keys
from harness.client.protocol.retry_after import MAX_CHARS, server_now
from harness.core import codec, reply_notes
from harness.core.reply_notes import ending, without_text
from harness.core.sanitize import quoted
from harness.core.secret import Secret

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""Longest event. An event with a token has hundreds of bytes, or thousands with log-probabilities."""

MAX_BODY_VALUES = 1_000_000
"""Largest number of values in a body that is one JSON value: a decoded empty list takes twenty times its bytes."""

_BOM = b"\xef\xbb\xbf"
"""UTF-8 byte order mark, which may precede a body."""

_OTHER_FIELD = re.compile(rb"(?:data|event)\Z|(?!(?i:data|event|error)(?::|\Z))[A-Za-z][\w-]{0,40}(?::|\Z)")
"""The beginning of a line that is a field without effect: a field of another name, or a name alone.

Capitalized names of the fields that are read do not match, because their text would be silently lost.
"""

_ENVELOPE = {*Event.__struct_fields__, "object", "created", "service_tier"}
"""Fields of an event or a body that never contain a message."""

_NO_MESSAGE = re.compile(
    r"""\A([:{["]|data\b|\Z)|["'](choices|delta|content|output|response\b|candidates|completion|generat|text_)"""
    "|[\x00-\x08\x0e-\x1f\ufffd]"
)
"""Signs that a body or an event is not a message: a stream without an event, JSON that does not end, fields with text
of damaged replies or of other APIs, bytes that are not text.
"""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""A control character that JSON allows nowhere."""

_decode = msgspec.json.Decoder().decode

_READERS = [(api.name, api.reader()) for api in APIS]


def _unnamed(event: bytes) -> bytes:
    """An event without a first line `event: NAME`, unless the name is `error`: no other name has a meaning here."""
    name, end, rest = event.partition(b"\n")
    return rest if end and name[:6] == b"event:" and name[6:].strip() != b"error" else event


class ReplyParser:
    """Parses the body of one response, which is JSON or a stream of server-sent events, as its bytes arrive.

    api: the API of the request. started: when it was sent, in seconds on the clock whose times are passed to `feed`.
    started_utc: the same moment as Unix time. secrets: texts that no message may show.

    n_bytes: number of bytes of the body that have been read. last_byte_at: when the latest byte arrived; `started`
    before the first byte.
    """

    __slots__ = (
        "_after_cr", "_api", "_completion", "_data", "_decode", "_error", "_events", "_failure", "_head", "_head_at",
        "_ignored", "_is_error", "_max_bytes", "_over_at", "_partial", "_reader", "_said", "_sign_at", "_state",
        "last_byte_at", "n_bytes", "secrets", "started",
    )  # fmt: skip

    def __init__(
        self,
        api: API,
        *,
        started: float,
        started_utc: float,
        max_body_bytes: int,
        secrets: Iterable[Secret] = (),
    ) -> None:
        self.started = started
        self._max_bytes = max_body_bytes
        self._head: Mapping[str, str] = {}
        self._head_at = 0.0  # Unix time
        self.secrets = tuple(secrets)
        self._state: Literal["undecided", "events", "json", "done", "failed"] = "undecided"
        self._failure: RequestFailed | None = None
        self._error: RequestFailed | None = None  # an error after which the reply may have continued
        self._api, self._reader = api.name, api.reader()
        self._decode = self._reader.decode  # looked up once, because every token needs it
        self._completion = Completion(started, started_utc)
        self.n_bytes = 0
        self.last_byte_at = started
        self._partial = bytearray()  # the unfinished line (events) or the body so far (json)
        self._ignored = b""  # lines without effect before the first event
        self._said: tuple[int, bytes | dict[str, Any]] = 0, b"{}"  # an event without text, after so many with text
        self._data: bytearray | None = None  # joined data lines of the unfinished event; None: not even an empty one
        self._after_cr = False  # whether the last byte was a CR that ended a line, so that an LF next ends no other
        self._is_error = False  # whether the unfinished event is named `error`; its type is also in its data
        self._over_at: float | None = None  # when the event that ends the reply, or `[DONE]`, arrived
        self._sign_at: float | None = None  # when the latest event that names a place in the reply arrived
        self._events = 0  # events read so far

    def take_headers(self, headers: Mapping[str, str]) -> None:
        """Take the response headers, keyed by lower-case name, which have just arrived."""
        self._head, self._head_at = headers, time.time()

    @property
    def done(self) -> bool:
        """Whether the event that ends the reply, or `[DONE]`, has arrived."""
        return self._over_at is not None

    @property
    def done_at(self) -> float | None:
        """When the reply was `done`, on the clock of `feed`; None until then."""
        return self._over_at

    @property
    def finished(self) -> bool:
        """Whether a finish reason has arrived, so that the text is complete and only token counts may follow."""
        return self._completion.finish_reason is not None

    @property
    def last_token_at(self) -> float | None:
        """When the latest token, or sign that the model is working, arrived, on the clock of `feed`; None if none."""
        stamps = self._completion.stamps
        latest = stamps[-1] if stamps else None
        return latest if self._sign_at is None else max(self._sign_at, latest or 0.0)

    @property
    def n_tokens(self) -> int:
        """The number of events with text that have been read."""
        return len(self._completion.stamps)

    def feed(self, data: bytes, arrived: float) -> None:
        """Read the next bytes of the body. arrived: when they arrived, on the clock of `started`.

        Raises `RequestFailed` as soon as it is certain that the reply fails.
        """
        size = len(data)
        event = _unnamed(data) if data[:1] == b"e" else data
        # The path of nearly every token: a piece that is one event, whose data are on one line.
        if (
            self._state == "events"
            and not (self._partial or self._is_error)
            and self._data is None
            and event[:7] == b"data: {"
            and event.find(b"\n") == len(event) - 2
            and event[-1] == 10
            and b"\r" not in data
            and size <= MAX_EVENT_BYTES
            and self.n_bytes + size <= self._max_bytes
        ):
            self.n_bytes += size
            if arrived > self.last_byte_at:
                self.last_byte_at = arrived
            self._dispatch_object(event[6:-2])
            return
        if self._is_done():
            self._after_done(data)
            return
        self.last_byte_at = max(arrived, self.last_byte_at)
        self.n_bytes += size
        over = self.n_bytes - self._max_bytes
        if over > 0:
            # Bytes beyond the limit are not read, so the outcome is the same however they were split.
            data = data[: max(0, len(data) - over)]
        if self._state == "undecided":
            data = self._sniff(data)
        if self._state == "events":
            self._read(data)
        elif self._state == "json":
            self._partial += data
        # With `[DONE]` within the limit, what follows is ignored in any case.
        if over > 0 and not self.done:
            why = "the server may be ignoring max_tokens"
            if self._completion.is_cumulative:
                why = "every event repeats the preceding text"
            raise self._fail("runaway", f"the reply exceeds {self._max_bytes} bytes: {why}")

    def finish(self, arrived: float | None = None, cut: str = "") -> Reply:
        """End the body and return the reply. Raises `RequestFailed` if the reply is not complete.

        arrived: when the body ended; None: with the latest bytes. cut: why it was cut off; empty if it ended normally.
        """
        if not self._is_done() and not self.done:
            self.last_byte_at = self.last_byte_at if arrived is None else max(arrived, self.last_byte_at)
            self._read_rest(cut)
            if self._state == "json":
                self._read_json(cut)
        completion, error = self._completion, self._error
        reason = completion.finish_reason
        how = ending(reason or "error")
        if error is not None and (how == "break" or not completion.n_chars):
            raise self._set_failure(error)
        if reason is None:
            raise self._unfinished(cut)
        if error is not None:
            completion.note(f"{reply_notes.FAULT}: {error}")
        if cut:
            if any(note.startswith(tuple(reply_notes.NO_END)) for note in completion.notes):
                raise self._fail(
                    "cut", f"the reply was cut off after a finish reason that does not mark its end ({quoted(cut)})"
                )
            completion.notes.append(f"cut after the finish reason: {quoted(cut)}")
        if self._state == "events" and not self.done:
            completion.notes.append("no [DONE]")
        if how == "break":
            raise self._fail("server", f"the server gave up on the request (finish_reason {quoted(reason)!r})")
        if how in ("filter", "unknown"):
            completion.note(f"{reply_notes.FILTERED if how == 'filter' else reply_notes.UNKNOWN_END}: {quoted(reason)}")
        reply = completion.reply(self.last_byte_at, self._head.get("x-request-id") or self._head.get("request-id"))
        try:
            calls, carry = self._reader.calls_and_parts()
        except BadEvent as bad:
            raise self._bad_event_failure(bad) from None
        reply = with_final_texts(reply, self._reader.said)
        if self._reader.echo:
            reply = msgspec.structs.replace(reply, echo=self._reader.echo)
        if (calls or carry) and how not in ("cut", "filter"):  # whatever ended the reply may have cut off the call
            reply = msgspec.structs.replace(reply, calls=calls, carry=carry)
        if not reply.calls and how != "cut" and not (reply.text or "").strip():
            notes = without_text(reply.notes, has_reasoning=bool(reply.reasoning))
            reply = msgspec.structs.replace(reply, notes=notes)
        return without_keys(reply, self.secrets)

    def _is_done(self) -> bool:
        """Whether `[DONE]` has arrived, so that further bytes are ignored. Raises the failure if the reply failed."""
        if self._failure is not None:
            raise self._failure
        return self._state == "done"

    # -- lines and events ----------------------------------------------------------------------------------------

    def _sniff(self, data: bytes) -> bytes:
        """Choose between `json` and `events` by the first byte that is not blank; return the bytes to read.

        The content type is ignored, since gateways often get it wrong.
        """
        if self._partial:
            data = bytes(self._partial) + data
            self._partial.clear()
        head = data.lstrip(b" \t\r\n")
        if len(head) < len(_BOM) and _BOM.startswith(head):  # no bytes yet, or the first of a byte order mark
            self._partial += head
            return b""
        head = head.removeprefix(_BOM)
        self._state = "json" if head[:1] in (b"{", b"[", b'"') else "events"
        return head

    def _read(self, data: bytes) -> None:
        """Read a piece of an event stream; an unfinished last line is kept for the next piece."""
        if not data:
            return
        follows_cr, self._after_cr = self._after_cr, data.endswith(b"\r")
        if follows_cr:
            data = data.removeprefix(b"\n")  # the second half of a line end that began in the previous piece
        if b"\r" in data:  # a line may end in CR, LF or both, and JSON contains no bare CR
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = data.rfind(b"\n") + 1
        if end:
            block = data[:end]
            if self._partial:
                block = bytes(self._partial) + block
                self._partial.clear()
            self._read_lines(block)
            if self._state == "done":
                self._after_done(data[end:])
                return
            data = data[end:]
        if data:
            self._partial += data
            if len(self._partial) > MAX_EVENT_BYTES:
                raise self._fail("malformed", f"a line in the reply exceeds {MAX_EVENT_BYTES} bytes")

    def _read_lines(self, block: bytes) -> None:
        """Read whole lines. An event of a single data line, the usual case, is read without splitting it.

        block: bytes that end in a line end.
        """
        parts = block.split(b"\n\n")
        last = parts.pop()
        between_events = self._data is None and not self._is_error
        for part in parts:
            event = _unnamed(part) if part[:1] == b"e" else part
            if between_events and event[:7] == b"data: {" and b"\n" not in event and len(event) <= MAX_EVENT_BYTES:
                self._dispatch_object(event[6:])
                continue
            for line in part.split(b"\n"):
                self._take_line(line)
            self._take_line(b"")
            between_events = self._state == "events"  # what follows `[DONE]` is noted line by line
        for line in last.split(b"\n")[:-1]:
            self._take_line(line)

    def _after_done(self, data: bytes) -> None:
        """Note bytes that arrive after `[DONE]`, unless they are blank lines."""
        if data.strip(b"\r\n"):
            self._completion.note(reply_notes.LATE_BODY)

    def _take_line(self, line: bytes) -> None:
        """Read one line of an event stream."""
        if self._state != "events":
            if self._state == "done":
                self._after_done(line)
            else:
                self._partial += line + b"\n"
            return
        if not line:
            if self._data is not None:
                self._dispatch(self._data)
            self._is_error = False
            return
        if len(line) > MAX_EVENT_BYTES:
            raise self._fail("malformed", f"a line in the reply exceeds {MAX_EVENT_BYTES} bytes")
        if line.startswith(b"data:"):
            self._add_data(line[6:] if line[5:6] == b" " else line[5:])
        elif line.startswith(b"event:"):
            self._is_error = line[6:].strip() == b"error"
        elif line.startswith(b"error:"):  # older llama.cpp servers
            self._is_error = True
            self._add_data(line[6:])
        elif line.startswith(b":") or _OTHER_FIELD.match(line):
            # OpenRouter and proxies keep a slow stream open with comments. Ids and retry times are for reconnecting,
            # which no completion API offers; the standard says to ignore fields of other names.
            if not self._events and len(self._ignored) < MAX_CHARS:
                self._ignored += line + b"\n"
        elif self.finished:
            self._completion.note(reply_notes.LATE_BYTES)
        elif self._events or self._data is not None:
            raise self._fail("malformed", f"a line in the stream is not an event field: {self._quote(line)}")
        else:
            self._state = "json"
            self._partial += line + b"\n"

    def _add_data(self, data: bytes) -> None:
        """Add the value of a `data` field to the unfinished event."""
        if self._data is None:
            self._data = bytearray(data)
        else:
            self._data += b"\n" + data
        if len(self._data) > MAX_EVENT_BYTES:
            raise self._fail("malformed", f"an event in the reply exceeds {MAX_EVENT_BYTES} bytes")

    def _dispatch(self, lines: bytearray) -> None:
        """Read the data of one event that came in several lines: `[DONE]` or a JSON object."""
        data, self._data = bytes(lines), None
        # Check the length first, so that `strip` does not copy long events.
        if len(data) < 64 and data.strip() == b"[DONE]":
            self._state = "done"
            self._over_at = self._over_at or self.last_byte_at
        elif self._is_error:
            self._events += 1
            self._dispatch_odd(data)
        else:
            self._dispatch_object(data)

    def _dispatch_object(self, data: bytes) -> None:
        """Read the data of one event that is not named `error` and is not `[DONE]`."""
        self._events += 1
        try:
            event = self._decode(data)
            self._completion.add(event, self.last_byte_at)
            if event.has_call:
                self._sign_at = self.last_byte_at
            if not event.choices:
                self._said = self.n_tokens, data
        except BadEvent as bad:
            raise self._bad_event_failure(bad) from None
        # Deeply nested JSON makes msgspec raise RecursionError.
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._dispatch_odd(data)

    def _dispatch_odd(self, data: bytes) -> None:
        """Read the data of an event that is named `error` or has an unusual form."""
        try:
            values = [_decode(data)]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            values = self._decode_slowly(data)
        for value in values:
            if type(value) is dict:
                self._take_event(value)
            elif self._is_error:
                raise self._set_failure(self._error_failure(value))
            elif value and not self.finished:
                raise self._message(value)
            elif value:
                self._completion.note(reply_notes.LATE_BYTES)

    def _take_event(self, value: dict[str, Any]) -> None:
        """Process an event that is a JSON object: a failure if it states an error, otherwise part of the reply."""
        error = value if self._is_error else self._reader.error(value)
        if error is not None:
            self._error = self._error or self._error_failure(error)
            if error is value and self._reader.index_field is None:  # not an error in a choice, or between parts
                raise self._set_failure(self._error)
        if not self._completion.stamps:
            self._refuse_other_api(value)
        try:
            event, notes = self._reader.event(value)
            for note in notes:
                self._completion.note(note)
            if event.is_whole and self._completion.stamps:
                self._completion.skip_whole(event)
            self._completion.add(event, self.last_byte_at)
        except BadEvent as bad:
            raise self._bad_event_failure(bad) from None
        if self._reader.index_field in value or event.has_call:
            self._sign_at = self.last_byte_at
        self._said = self.n_tokens, value
        if self._reader.over and self._over_at is None:
            self._over_at = self.last_byte_at

    def _refuse_other_api(self, value: dict[str, Any]) -> None:
        """Raise `RequestFailed` if an object is another API's reply, or the event that begins one."""
        forms = (value, object_of(value.get("response")), object_of(value.get("message")))
        apis = [api for api, reader in _READERS if any(map(reader.is_body, forms))]
        if apis and self._api not in apis:
            what = f"the response is from api={apis[0]}, but the request used api={self._api}: set `api={apis[0]}`"
            raise self._fail("malformed", what)

    def _decode_slowly(self, data: bytes) -> list[Any]:
        """Decode what strict decoders reject: several values, lone surrogates, numbers out of range, bytes that are not
        UTF-8 (replaced, as the standard of event streams says), control characters, plain text.
        """
        text = data.decode("utf-8", "replace")
        try:
            values = codec.values_in(text)
        except codec.DecodeError:
            return [data.strip().decode("utf-8", "replace")]
        if text.encode("utf-8", "surrogatepass") != data or _CONTROL.search(text):
            self._completion.note(reply_notes.ODD_BYTES)
        # Only the lenient decoder accepts halves of surrogate pairs; they must be joined at the end of the reply.
        self._completion.may_hold_halves = True
        return values or [""]

    # -- the end -------------------------------------------------------------------------------------------------

    def _read_rest(self, cut: str) -> None:
        """Read a last line without a line end and a last event without a blank line.

        If they are incomplete, the reply was cut off there. cut: why the body ended early; "" if it did not.
        """
        if self._state != "events":
            return
        rest = bytes(self._partial)
        self._partial.clear()
        is_stream = cut or self._events or rest.startswith(b"data")
        try:
            # A complete line would be a field without effect; an unfinished one may begin `data` or `event`.
            if is_stream and rest not in (b"data", b"event") and _OTHER_FIELD.match(rest):
                raise self._fail("malformed", f"not an event: {self._quote(rest)}")
            if rest:
                self._take_line(rest)
            if self._data is not None and not self.done:
                self._dispatch(self._data)
        except RequestFailed as failure:
            if failure.kind != "malformed":
                raise
            # The fault is in a rest that was cut off, so the server is not to blame.
            self._state, self._failure = "events", None
            if not self.finished:
                raise self._fail(
                    "cut", f"the stream ended in the middle of an event ({quoted(cut) or 'cleanly'})"
                ) from None

    def _read_json(self, cut: str) -> None:
        """Read a reply that came as one JSON value instead of a stream. cut: why it ended early; "" if it did not."""
        data = bytes(self._partial)
        self._partial.clear()
        if codec.holds_more_than(MAX_BODY_VALUES, data):
            raise self._fail("malformed", f"the reply contains more than {MAX_BODY_VALUES} JSON values")
        value, *more = self._decode_slowly(data)
        if cut and isinstance(value, str):
            raise self._fail("cut", f"the reply is not JSON ({quoted(cut)}): {self._quote(data)}")
        if type(value) is list and len(value) == 1:  # the form of Gemini's errors
            value = value[0]
        if type(value) is dict:
            self._refuse_other_api(value)
        if type(value) is not dict or not (self._reader.is_body(value) or is_error(value)):
            raise self._message(value)
        for event in (value, *more):  # several are a stream without the names of its fields
            if type(event) is not dict:
                raise self._message(event)
            self._take_event(event)

    def _unfinished(self, cut: str) -> RequestFailed:
        """The failure of a reply without a finish reason. cut: why the body ended early; "" if it did not."""
        if not self.n_bytes:
            return self._fail("cut", f"the reply is empty{f' ({quoted(cut)})' if cut else ''}")
        if self._state == "events" and not (self._events or cut):
            text = self._ignored.decode("utf-8", "replace").strip()
            if text and any(field.startswith(text) for field in ("data:", "event:")):
                return self._fail("cut", "the stream ended in the middle of an event (cleanly)")
            return self._message(text)
        n_before, said = self._said
        value = _decode(said) if isinstance(said, bytes) else said
        words = {name: each for name, each in value.items() if each and name not in _ENVELOPE}
        is_part = value.get("choices") or value.get("usage") or (self._reader.index_field and "type" in value)
        if words and not is_part and n_before == self.n_tokens:
            return self._message(words)
        how = quoted(cut) or ("its end marker was received" if self.done else "the body ended cleanly")
        return self._fail("cut", f"the reply ended without a finish reason ({how}, {self.n_tokens} token events)")

    def failure(self, kind: FailureKind, message: str) -> RequestFailed:
        """The failure of this reply for a reason that only the transport knows (a deadline)."""
        return self._error or RequestFailed(kind, quote_safely(message, self.secrets))

    def _fail(self, kind: FailureKind, message: str) -> RequestFailed:
        """Put the parser into the state `failed`, and return the failure for the caller to raise."""
        return self._set_failure(RequestFailed(kind, quote_safely(message, self.secrets)))

    def _bad_event_failure(self, bad: BadEvent) -> RequestFailed:
        return self._fail("malformed", f"an event in the reply is invalid: {bad}")

    def _message(self, value: object) -> RequestFailed:
        """The failure for what contains no part of a reply. value: decoded JSON or a text."""
        failure = self._error_failure(value)
        if isinstance(value, dict):  # an empty field of a reply is not a damaged one
            value = {name: each for name, each in value.items() if each and name not in _ENVELOPE}
        if failure.kind == "server" and _NO_MESSAGE.search(value if isinstance(value, str) else f" {value}"):
            failure = RequestFailed("malformed", failure.message.replace("error in the", "not part of a", 1))
        return self._set_failure(failure)

    def _error_failure(self, error: object) -> RequestFailed:
        """The failure for an error in the reply; the server's clock has advanced since its headers."""
        now = time.time()
        since = now - self._head_at if self._head else 0.0
        return failure_of_event(error, self.secrets, now=server_now(self._head, now - since) + since)

    def _set_failure(self, failure: RequestFailed) -> RequestFailed:
        self._state, self._failure = "failed", failure
        return failure

    def _quote(self, data: bytes) -> str:
        return quote_safely(data[:8000].decode("utf-8", "replace"), self.secrets) or "nothing"
