"""Turning a server's refusal (an error status, or an error inside a stream) into a `RequestFailed` of the right kind.

The kind decides what happens next: `generation.dispatch.retry` decides about the sample, `generation.dispatch.lanes`
about the endpoint. The message quotes the server, cut, without keys and made harmless. Shapes of error bodies:

    {"error": {"message", "type", "code"}}    OpenAI, vLLM, llama.cpp, LiteLLM
    {"error": "text"}                         vLLM without a key
    {"object": "error", "message"}            SGLang
    {"detail": …}                             FastAPI
    a list around one of these                Gemini
"""

from __future__ import annotations

import errno
import math
import re
import ssl
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

from harness.client.address.endpoint import quote_safely
from harness.client.protocol.reply import FailureKind, RequestFailed
from harness.core import codec
from harness.core.limits import MAX_ERROR_BODY_BYTES
from harness.core.secret import Secret

MAX_RETRY_AFTER_S = 3600.0
"""Longest pause that a server can ask for by Retry-After; a longer one is shortened, and the message says so."""

_TOO_LONG = (
    r"context[ _-]?(length|window|size)[ _-]?(is|exceeded|of)"  # OpenAI's code; vLLM's "maximum context length is"
    r"|ContextWindowExceeded"  # LiteLLM
    r"|(prompt|input) is too long|range of input length should be"  # Anthropic, DashScope
    r"|exceeds the maximum number of tokens|`inputs` tokens \+ `max_new_tokens`"  # Gemini, TGI
    r"|exceeds? (the )?(model's |maximum )?context|reduce the length of the (messages|input|prompt)"
)
"""Words of hosted services and gateways for a prompt that is too long. The words of engines stand in their dialects."""
_UNKNOWN_MODEL = re.compile(
    r"invalid model|unknown model|model[^.]{0,200}(does not exist|not found|not exist|is not supported)", re.IGNORECASE
)
# Bounded, so that a page full of `<` is searched in a short time.
_MARKUP = re.compile(r"<(style|script)\b.*?</\1>|<[^>]{0,500}>", re.DOTALL | re.IGNORECASE)
_NO_QUOTA = re.compile(r"insufficient[_ ](quota|balance|credit)|exceeded your current quota|billing", re.IGNORECASE)


@cache
def _too_long() -> re.Pattern[str]:
    """A pattern that finds the words of any service or engine for a prompt that is longer than the context."""
    from server_launchers.engines import table as engines  # a slow import, needed for refusals only

    own = (pattern for dialect in engines.dialects() for pattern in dialect.too_long)
    return re.compile("|".join((_TOO_LONG, *own)), re.IGNORECASE)


def failure_of_status(
    status: int,
    body: bytes,
    headers: Mapping[str, str] = {},
    secrets: Iterable[Secret] = (),
    now: float | None = None,
) -> RequestFailed:
    """The failure for an HTTP response whose status is not 200.

    headers: by names in lower case. secrets: texts to hide. now: Unix time, to which a date in Retry-After is compared.
    """
    if 300 <= status < 400:
        target = quote_safely(headers.get("location", ""), secrets) or "no stated address"
        return RequestFailed(
            "refused",
            f"HTTP {status}: redirects to {target}; no redirect is followed: give that address itself",
            status=status,
        )
    words = error_words(_decompress(body, headers.get("content-encoding", "")))
    kind = classify(status, words)
    wait = _stated_seconds(headers, datetime.now(UTC).timestamp() if now is None else now)
    message = f"HTTP {status}: {quote_safely(words, secrets) or 'no explanation'}"
    if wait is not None and wait > MAX_RETRY_AFTER_S:
        message += f" (asks to wait {wait:.0f} s; waiting {MAX_RETRY_AFTER_S:.0f} s)"
        wait = MAX_RETRY_AFTER_S
    return RequestFailed(kind, message, status=status, retry_after=wait)


def failure_to_connect(error: BaseException, address: str, secrets: Iterable[Secret] = ()) -> RequestFailed:
    """The failure for an error of the system in connecting to `address`."""
    cause = quote_safely((error.strerror if isinstance(error, OSError) else None) or str(error), secrets)
    if isinstance(error, ssl.SSLError):
        message = f"no trusted TLS connection to {address}: {cause}; SSL_CERT_FILE names the authorities to trust"
        return RequestFailed("refused", message)
    message = f"cannot connect to {address}: {cause or type(error).__name__}"
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        message += "; lower the concurrency or raise `ulimit -n`"
    return RequestFailed("connect", message)


def failure_of_event(error: Any, secrets: Iterable[Secret] = ()) -> RequestFailed:
    """Make a failed request of an error event inside a stream, or of an error object in a reply of status 200."""
    words = _words(error) or "no explanation"
    status = _stated_status(error)
    kind = "server" if status is None else classify(status, words)
    if status is None and _too_long().search(words):
        kind = "too_long"
    message = f"error in the stream: {quote_safely(words, secrets)}"
    return RequestFailed(kind, message, status=status)


def classify(status: int, words: str) -> FailureKind:
    """The kind of failure for an error status and the server's explanation (`words`)."""
    if status == 429:
        # An empty account is no matter of pace: waiting does not fill it.
        return "refused" if _NO_QUOTA.search(words) else "rate_limited"
    if status in (400, 413, 422) and _too_long().search(words):
        return "too_long"
    if status in (401, 402, 403, 404, 405, 407, 410):
        return "refused"
    if status == 400 and _UNKNOWN_MODEL.search(words):
        return "refused"
    if status in (408, 409, 423, 425) or status >= 500:
        return "server"
    return "rejected"


def error_words(body: bytes) -> str:
    """Find the server's explanation in the body of an error reply; return the whole body if its shape is unknown."""
    try:
        value: Any = codec.decode(body)
    except codec.DecodeError:
        return _plain(body)
    return _words(value) or _plain(body)


def retry_after_seconds(value: str, now: float) -> float | None:
    """Seconds that a Retry-After header asks for; it holds a number, or an HTTP date. now: Unix time.

    None for nonsense: negative, NaN, infinite, a date in the past, words. The result has no upper bound.
    """
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, TypeError, IndexError, OverflowError):
            # `parsedate_to_datetime` raises each of these for some malformed date.
            return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _stated_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that a 429 or 503 asks to wait; None if it states none. now: Unix time."""
    stated = retry_after_seconds(headers.get("retry-after-ms", ""), now)
    return retry_after_seconds(headers.get("retry-after", "").strip(), now) if stated is None else stated / 1000


def _stated_status(error: Any) -> int | None:
    """The HTTP status that an error object names in its `code`, `status` or `status_code`; None if it names none."""
    for value in (error, error.get("error") if isinstance(error, dict) else None):
        if isinstance(value, dict):
            for key in ("code", "status", "status_code"):
                stated = value.get(key)
                # isdigit() alone accepts ², which int() refuses.
                if isinstance(stated, str) and stated.isascii() and stated.isdigit() and len(stated) == 3:
                    stated = int(stated)
                if type(stated) is int and 400 <= stated <= 599:
                    return stated
    return None


def _words(error: Any) -> str:
    """The message in a decoded error of any known shape; empty if there is none."""
    value: Any = error
    for _ in range(4):  # list → object → error → message is the deepest shape seen
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value:
            if all(isinstance(item, dict) and "msg" in item for item in value):  # FastAPI's validation errors
                return "; ".join(map(_validation_error, value[:5]))
            value = value[0]
        elif isinstance(value, dict):
            kind = value.get("type") if isinstance(value.get("type"), str) else value.get("code")
            message = value.get("message")
            if isinstance(message, str) and message:
                named = isinstance(kind, str) and kind and not kind.isdigit() and kind not in message
                return f"{message} ({kind})" if named else message
            value = value.get("error") or value.get("detail") or value.get("errors") or message
        else:
            return ""
    return ""


def _validation_error(item: dict[str, Any]) -> str:
    """One of FastAPI's validation errors in words: `body.max_tokens: …`."""
    path = item.get("loc")
    names = [str(name) for name in path if isinstance(name, str | int)] if isinstance(path, list) else []
    message = item["msg"] if isinstance(item["msg"], str) else "invalid"
    return f"{'.'.join(names)}: {message}" if names else message


def _decompress(body: bytes, content_encoding: str) -> bytes:
    """An error body, unpacked if it is gzip or deflate, up to `MAX_ERROR_BODY_BYTES`."""
    if content_encoding.strip().lower() not in ("gzip", "x-gzip", "deflate"):
        return body
    try:
        # 47 is 32 + 15: zlib itself tells gzip from deflate by the header.
        return zlib.decompressobj(wbits=47).decompress(body, MAX_ERROR_BODY_BYTES)
    except zlib.error:
        return b"(an unreadable compressed body)"


def _plain(body: bytes) -> str:
    text = body[:2000].decode("utf-8", "replace").strip()
    if text[:1] == "<":  # an HTML page of a proxy or a web server: keep its words only
        text = " ".join(_MARKUP.sub(" ", text).split())
    return text
