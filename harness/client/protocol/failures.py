"""A request that failed (`RequestFailed`): its kind, from what the server says or what broke, and how long to wait.

The kind decides what happens next: `generation.dispatch.retry` decides about the sample, `generation.dispatch.lanes`
about the endpoint. The message quotes the server, truncated, without keys and made harmless. Whatever a server sends in
place of a reply is an error, in any shape and with any status. Words that ask for patience count wherever they are.
Shapes whose explanation is quoted without the JSON around it:

    {"error": {"message", "type", "code"}}    OpenAI, vLLM, llama.cpp, LiteLLM
    {"error": "text"}                         vLLM without a key
    {"object": "error", "message"}            SGLang
    {"detail": …}                             FastAPI
    a list around one of these                Gemini
"""

from __future__ import annotations

import errno
import re
import ssl
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, Literal

from harness.client.address.endpoint import error_quoted, quote_safely
from harness.client.protocol.retry_after import MAX_CHARS, server_now, stated_wait
from harness.core import codec
from harness.core.errors import Hope
from harness.core.sanitize import MAX_ERROR_BODY_BYTES
from harness.core.secret import Secret

FailureKind = Literal[
    "connect",  # refused, not made in time, reset before the reply, unreachable, DNS
    "timeout",  # first-token or idle deadline
    "cut",  # the stream ended without a finish reason, or inside an event
    "malformed",  # not an event stream, bad JSON, bad UTF-8, line or body over its limit
    "server",  # 5xx, 408, an error inside or in place of the reply, a finish reason that marks a failure
    "rate_limited",  # 429, 503, 529, words of a limit, of load or of a start
    "too_long",  # the prompt (plus max_tokens) exceeds the context: final for this question
    "rejected",  # 400, 413, 422, 501: this payload will never be accepted
    "refused",  # 401, 403, 404: no request will be accepted; stops the run
    "runaway",  # generation far past the requested budget; not retried
]
"""Why a request failed. The kind decides whether the request is sent again and what it says about the endpoint."""


@dataclass(eq=False)
class RequestFailed(Exception):
    """A request failed. Data for the retry policy: never a crash, never counted as a wrong answer.

    kind: see `FailureKind`. status: the HTTP status; None if none was received. message: the server's text or the
    cause, safe to print, without keys. retry_after: seconds that the server asked us to wait; None if it did not, or
    wrote nonsense. sent: whether there was a connection, so that the request was sent. unanswered: whether the
    connection ended before any byte of a reply. If the connection had served an earlier request, the server has closed
    it since then, and the transport sends the request again on a new connection. in_reply: whether the server
    reported the failure in place of a reply or inside it. n_events: token events received before the failure.
    resumable: whether the connection ended during the reply, whose tokens then show that the server works. The sender
    sets both. starting: whether the server says that it is starting. ticket: where a 303 says that the reply will be.
    """

    kind: FailureKind
    message: str
    _: KW_ONLY
    status: int | None = None
    retry_after: float | None = None
    unanswered: bool = False
    sent: bool = True
    in_reply: bool = False
    n_events: int = 0
    resumable: bool = False
    starting: bool = False
    ticket: str = ""

    def __str__(self) -> str:
        return self.message

    @property
    def free(self) -> bool:
        """Whether the server made no reply, the only case that is certain to cost nothing.

        It could not be reached, or it reported an error before the first token.
        """
        refused = self.in_reply or self.status is not None or self.kind in ("too_long", "refused")
        return self.kind == "connect" or (refused and not self.n_events)

    @property
    def hope(self) -> Hope | None:
        """Why a server that responded so may still answer; None if it will not."""
        return (
            "starting" if self.starting else "passing" if self.kind in ("connect", "rate_limited", "server") else None
        )

    @property
    def signature(self) -> tuple[str, int | None, str]:
        """What failures with the same cause have in common: the message without numbers and quotations."""
        return self.kind, self.status, re.sub(r"\d+", "", self.message.partition(": ")[0])

    @property
    def retryable(self) -> bool:
        """Whether sending the request again can succeed."""
        return self.kind in ("connect", "timeout", "cut", "malformed", "server", "rate_limited")


STATUS_OF_WORD = {
    word: status
    for status, words in {
        400: "invalid_request_error invalid_prompt invalid_argument failed_precondition badrequesterror",
        401: "authentication_error invalid_api_key unauthenticated",
        402: "billing_error insufficient_quota insufficient_credits insufficient_balance",
        403: "permission_error permission_denied",
        404: "not_found_error not_found model_not_found",
        413: "request_too_large",
        501: "not_supported_error notimplementederror unimplemented",
    }.items()
    for word in words.split()
}
"""A word in an error's `code`, `status` or `type` → its HTTP status, if another request could not succeed either. The
words are from OpenAI's and Anthropic's packages, Google's status codes, vLLM, Moonshot, Mistral and AWS.
"""

SAID_WAIT_S = 60.0
"""If a stated wait is longer than this many seconds, the message says when it ends."""

_TOO_LONG = (
    r"context[ _-]?(length|window|size)[ _-]?(is|exceeded|of)"  # OpenAI's code; vLLM's "maximum context length is"
    r"|ContextWindowExceeded"  # LiteLLM
    r"|(prompt|input) is too long|range of input length should be"  # Anthropic, DashScope
    r"|exceeds the maximum number of tokens|`inputs` tokens \+ `max_new_tokens`"  # Gemini, TGI
    r"|exceeds? (the )?(model's |maximum )?context|reduce the length of the (messages|input|prompt)"
)
"""Phrases of hosted services and gateways for a prompt that is too long. Those of engines are in their profiles."""
_UNKNOWN_MODEL = re.compile(
    r"invalid model|unknown model|model[^.]{0,200}(does not exist|not found|not exist|is not supported)", re.IGNORECASE
)
# The length is limited, so that searching a page full of `<` takes little time.
_MARKUP = re.compile(r"<(style|script)\b.*?</\1>|<[^>]{0,500}>", re.DOTALL | re.IGNORECASE)
_NO_QUOTA = re.compile(r"insufficient[_ ](quota|balance|credit)|limit: 0\b", re.IGNORECASE)
_NO_QUOTA_NOW = re.compile(
    r"(?!.*per[ _-]?min).*(exceeded your current quota|billing_|\bper[ -]day\b|\bdaily\b)", re.IGNORECASE | re.DOTALL
)
"""Phrases for an empty account or a daily quota, which Gemini sometimes reports together with a wait of seconds."""
_STARTS = re.compile(
    r"""("|\b(is|are|being|still|currently|model|engine|server|service|worker|instance)\ (\w+\ )?)
      (((down|re)?load|start|boot|prepar|initiali[sz]|deploy|provision|wak|warm|pull|spinn|scal|queu|sleep|pend|hibernat
      )ing|queued|standby|asleep)\b
    | \bbeing\ (load|deploy|start)ed | \bwarm(ing|s)?\ ?up | cold\ ?start | \bnot\ (yet\ )?(ready|loaded)
    | 加载|启动|预热""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of a start."""
_WAITS = re.compile(
    r"""(rate|qps|[rt]p[msd]|(?<!per\ )requests?|usage|traffic|session|connection|frequency)\ ?((rate|count)\ )?limit
    | (\b(rate|[rt]p[msd]|capacity|resources?|queue)|\bper\ (second|minute|hour)|concurren\w*|simultaneous\w*)
      \ .{0,30}(exceed|reach|full|exhaust|long|high|max|limit)
    | too\ many\ (request|call|quer|user|task|session|connection|concurren|simultaneous|active) | throttl | quota
    | slow\ down | too\ (fast|frequent|quick) | overload | shedding | \bbusy\b | (high|heavy)\ (demand|load|traffic)
    | (at|over|no)\ (\w+\ )?capacity | (again|retry)\ (later|soon|shortly|in\ a) | waiting\ for | \bin\ (the\ )?queue\b
    | (temporar\w+|service|backend|upstream|server|worker|engine)\ (is\ )?(\w+\ )?(un|not\ )available | "unavailable
    | \bno\ ((available|healthy|free|idle)\ \w|(slot|worker|instance|replica)s?\ (\w+\ )?available)
    | 限流|频[率繁]|繁忙|并发|[过超负]载|排队|稍后""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of a limit or of load, with single blanks between them: a later request may succeed."""
_BETWEEN_WORDS = re.compile(r'[^\w"]+|_+|(?<=[a-z])(?=[A-Z])')
SEE_OTHER = 303
"""The status with which a server says where it will put the reply, a *ticket*, as Modal does after 150 s."""

TICKET_S = 1.0
"""Seconds between two looks at such an address."""

_COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"})


@cache
def _of_engines(field: str, *own: str) -> re.Pattern[str]:
    """A pattern that matches the phrases of any engine in this field of its profile. own: additional phrases."""
    from server_launchers.engines import table as engines  # a slow import, needed only for refusals

    words = (pattern for profile in engines.profiles() for pattern in getattr(profile, field))
    return re.compile("|".join((*own, *words)), re.IGNORECASE)


def reports_dead_engine(words: str) -> bool:
    """Whether a server says that its engine has died, so that no later request can succeed."""
    return _of_engines("dead").search(words) is not None


def failure_of_status(
    status: int, body: bytes, headers: Mapping[str, str] = {}, secrets: Iterable[Secret] = ()
) -> RequestFailed:
    """The failure for an HTTP response whose status is not 200.

    headers: keyed by lower-case name. secrets: texts to hide.
    """
    if 300 <= status < 400:
        location = headers.get("location", "")
        target = quote_safely(location, secrets) or "no address"
        does = f"redirects to {target}, but redirects are not followed; use that address instead"
        if status == SEE_OTHER:
            does = f"refers to {target} for its reply, which is not on the same host"
        return RequestFailed(
            "refused", f"HTTP {status}: {does}", status=status, ticket=location if status == SEE_OTHER else ""
        )
    body = unpacked(body, headers, MAX_ERROR_BODY_BYTES)
    return _failure(f"HTTP {status}", _decoded(body), status, headers, secrets)


def failure_to_connect(error: BaseException, address: str, secrets: Iterable[Secret] = ()) -> RequestFailed:
    """The failure for a system error while connecting to `address`."""
    cause = quote_safely((error.strerror if isinstance(error, OSError) else None) or str(error), secrets)
    if isinstance(error, ssl.SSLError):
        trust = "set SSL_CERT_FILE to the certificate authorities to trust"
        message = f"cannot establish a trusted TLS connection to {address}: {cause}; {trust}"
        return RequestFailed("refused", message)
    message = f"cannot connect to {address}: {cause or type(error).__name__}"
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        message += "; lower the concurrency or raise `ulimit -n`"
    return RequestFailed("connect", message, sent=False)


def failure_of_event(
    error: object, secrets: Iterable[Secret] = (), where: str = "error in the reply", now: float | None = None
) -> RequestFailed:
    """The failure for a value in place of a reply or of a part of one, with status 200 or in a batch.

    where: the beginning of the message. now: the server's Unix time; None: the same as ours.
    """
    return replace(_failure(where, error, _stated_status(error), {}, secrets, now), in_reply=True)


def _failure(
    where: str,
    error: object,
    status: int | None,
    headers: Mapping[str, str],
    secrets: Iterable[Secret],
    now: float | None = None,
) -> RequestFailed:
    """The failure for an error that a server reports anywhere. where: the beginning of the message. now: Unix time if
    the headers have no Date; None: the present.
    """
    now, words = server_now(headers, now), _words(error)
    # Proxies report an upstream's limit or load with a less specific status; GitHub reports its own limit with 403.
    starting, is_fault = False, status is not None and status >= 500
    if classify(status, words) != "too_long" and status not in (401, 402, 407, 413, 422):
        searched = _BETWEEN_WORDS.sub(" ", f'"{_plain(error)}').replace('" ', '"')
        says_limit, starting = _WAITS.search(searched), _STARTS.search(searched) is not None
        # A 503 without a word of a limit is how servers and gateways answer while a model loads.
        status, starting = 429 if says_limit or starting else status, starting or (status == 503 and not says_limit)
    # With a 5xx the words report a fault, of whatever length; a limit has its header.
    wait = stated_wait(headers, error, "" if is_fault else words, now, limited=status == 429)
    message = f"{where}: {error_quoted(words, secrets) or 'no explanation'}"
    if wait is not None and wait > SAID_WAIT_S:
        on_the_users_clock = datetime.fromtimestamp(time.time() + wait).astimezone()
        message += f" (retry after {on_the_users_clock:%Y-%m-%d %H:%M %Z})"
    kind = classify(status, words, waits=wait is not None)
    starting = starting and kind == "rate_limited"
    return RequestFailed(kind, message, status=status, retry_after=wait, starting=starting)


def classify(status: int | None, words: str, *, waits: bool = False) -> FailureKind:
    """The kind of failure for an error status and the server's explanation (`words`).

    status: None if the error states none. waits: whether the error says when the next request may be sent.
    """
    if status in (429, 503, 529):
        # An empty account is not a matter of pace: waiting does not fill it.
        empty = _NO_QUOTA.search(words) or (not waits and _NO_QUOTA_NOW.match(words))
        return "refused" if empty else "rate_limited"
    if status in (None, 400, 413, 422) and _of_engines("too_long", _TOO_LONG).search(words):
        return "too_long"
    if status is None:
        return "server"
    if status in (401, 402, 403, 404, 405, 407, 410):
        return "refused"
    if status == 400 and _UNKNOWN_MODEL.search(words):
        return "refused"
    # 498: Groq's servers are full. 501 (llama.cpp, vLLM) and 505: waiting does not add a missing feature or protocol.
    if status in (408, 409, 423, 425, 498) or (status >= 500 and status not in (501, 505)):
        return "server"
    return "rejected"


def error_words(body: bytes) -> str:
    """The server's explanation in the body of an error reply; the whole body if its shape is unknown."""
    return _words(_decoded(body))


def _decoded(body: bytes) -> object:
    """The JSON value of an error body; its text if it is not JSON."""
    try:
        return codec.decode(body)
    except codec.DecodeError:
        return body.decode("utf-8", "replace")


def _stated_status(error: object) -> int | None:
    """The HTTP status that an error names in its `code`, `status`, `status_code` or `type`, as a number or a word.

    None if it names none. An inner error takes precedence over the enclosing one, and a number over a word.
    """
    inner = error.get("error") if isinstance(error, dict) else None
    stated = [
        each.get(key)
        for each in (inner, error)
        if isinstance(each, dict)
        for key in ("code", "status", "status_code", "type")
    ]
    for value in stated:
        # isdigit() alone accepts ², which int() rejects.
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
            value = int(value)
        if type(value) is int and 400 <= value <= 599:
            return value
    words = (STATUS_OF_WORD.get(value.strip().lower()) for value in stated if isinstance(value, str))
    return next(filter(None, words), None)


def _words(error: Any) -> str:
    """The message in a decoded error of any known shape; all of the error if there is none, or several may be one."""
    value: Any = error
    for _ in range(4):  # list → object → error → message is the deepest shape seen
        if isinstance(value, list) and value:
            if all(isinstance(item, dict) and "msg" in item for item in value):  # FastAPI's validation errors
                return "; ".join(map(_validation_error, value[:5]))
            value = value[0]
        elif isinstance(value, dict):
            kind = value.get("type") if isinstance(value.get("type"), str) else value.get("code")
            message = value.get("message")
            if isinstance(message, str) and message:
                if isinstance(field := value.get("param"), str) and field not in message:
                    message = f"{field}: {message}"
                named = isinstance(kind, str) and kind and not kind.isdigit() and kind not in message
                return f"{message} ({kind})" if named else message
            is_only = sum(isinstance(each, str) for each in value.values()) == 1  # otherwise it may be a code
            value = value.get("error") or value.get("detail") or value.get("errors") or message
            if is_only and isinstance(value, str):
                return value
        else:
            break
    return _plain(error)


def _validation_error(item: dict[str, Any]) -> str:
    """One of FastAPI's validation errors as text: `body.max_tokens: …`."""
    path = item.get("loc")
    names = [str(name) for name in path if isinstance(name, str | int)] if isinstance(path, list) else []
    message = item["msg"] if isinstance(item["msg"], str) else "invalid"
    return f"{'.'.join(names)}: {message}" if names else message


def unpacked(body: bytes, headers: Mapping[str, str], max_bytes: int) -> bytes:
    """The body of a reply, unpacked up to `max_bytes` if its headers (lower-case names) declare gzip or deflate."""
    if headers.get("content-encoding", "").strip().lower() not in ("gzip", "x-gzip", "deflate"):
        return body
    try:
        # 47 is 32 + 15: zlib itself distinguishes gzip from deflate by the header.
        return zlib.decompressobj(wbits=47).decompress(body, max_bytes)
    except zlib.error:
        return b"(an unreadable compressed body)"


def refuse_compressed(headers: Mapping[str, str]) -> None:
    """Raise `RequestFailed` for a reply that these headers declare compressed; other encodings do not change the bytes.

    headers: keyed by lower-case name.
    """
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding in _COMPRESSIONS:
        raise RequestFailed("malformed", f"the response is compressed ({encoding}), but compression was not requested")


def _plain(error: object) -> str:
    """An error of any shape as one text."""
    text = error if isinstance(error, str) else codec.encode(error).decode() if error else ""
    text = text[:MAX_CHARS].strip()
    if text[:1] == "<":  # an HTML page from a proxy or a web server: keep only its words
        text = " ".join(_MARKUP.sub(" ", text).split())
    return text
