"""What a request comes to: a finished `Reply`, or a `RequestFailed`. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from harness.client.address.endpoint import without_repeats
from harness.core.records import Timing, Usage
from harness.core.secret import HIDDEN, Secret

FailureKind = Literal[
    "connect",  # refused, reset before the reply, unreachable, DNS
    "out_of_files",  # this machine has no descriptor left for a socket: says nothing about the endpoint
    "timeout",  # connect, first-token or idle deadline
    "cut",  # the stream ended without a finish reason, or inside an event
    "malformed",  # not an event stream, bad JSON, bad UTF-8, line or body over its bound
    "server",  # 5xx, 408, an error event inside the stream
    "rate_limited",  # 429
    "too_long",  # the prompt (plus max_tokens) exceeds the context: final for this question
    "rejected",  # 400, 413, 422: this payload will never be accepted
    "refused",  # 401, 403, 404: no request will be accepted; stops the run
    "runaway",  # generation far past the asked budget; not retried
]

MAX_LIKELIEST = 100
"""Tokens of one place whose log-probabilities are taken."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A completion that the server finished: it carries a finish reason. text, reasoning: as sent, None = null."""

    text: str | None
    reasoning: str | None
    finish_reason: str
    usage: Usage
    timing: Timing
    server_model: str | None = None
    fingerprint: str | None = None
    request_id: str | None = None
    n_logprobs: int = 0
    n_odd_logprobs: int = 0
    """Tokens with a log-probability, and those whose own is null, as servers write what is no number."""
    likeliest: Mapping[str, float] = {}
    """Token → log-probability in the place of the last one, as plain completions state it (`top_logprobs`)."""
    notes: tuple[str, ...] = ()
    """Oddities worth a line in the log, e.g. "no [DONE]"."""


def without_keys(reply: Reply, secrets: Iterable[Secret]) -> Reply:
    """The reply, what it repeats of a key hidden; a note says so.

    The model's name stays where it is a secret in full: some gateways choose the model by a header, whose value counts
    as one, and a run compares the name with its own.
    """
    secrets = tuple(secrets)
    if not secrets:
        return reply
    hidden = {
        name: shown
        for name in ("text", "reasoning", "finish_reason", "server_model", "fingerprint", "request_id")
        if (text := getattr(reply, name)) and (shown := without_repeats(text, secrets)) != text
    }
    if hidden.get("server_model") == HIDDEN:
        del hidden["server_model"]
    notes = tuple(without_repeats(note, secrets) for note in reply.notes)
    if not hidden:
        return reply if notes == reply.notes else msgspec.structs.replace(reply, notes=notes)
    words = f"repeats a key of the request in its {', '.join(hidden)}: hidden"
    return msgspec.structs.replace(reply, **hidden, notes=(*notes, words))


class RequestFailed(Exception):
    """One request came to nothing. Data for the retry policy, never a crash, never a wrong answer.

    status: HTTP status if there was one. message: the server's words or the cause, safe to print, keys redacted.
    retry_after: seconds that the server asked for, already parsed; None if it did not (or wrote nonsense).
    partial_text: what had come, for diagnosis only. unanswered: the connection ended before any byte of a reply; on a
    kept connection that means that the server had closed it in between, and a transport asks again on another one.
    going_on: the request was to go on with a half-written answer, and brought no token of it; set by whoever sent it.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        partial_text: str = "",
        unanswered: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.status = status
        self.retry_after = retry_after
        self.partial_text = partial_text
        self.unanswered = unanswered
        self.going_on = False

    @property
    def retryable(self) -> bool:
        """Asking again can help."""
        return self.kind in ("connect", "out_of_files", "timeout", "cut", "malformed", "server", "rate_limited")

    @property
    def stops_run(self) -> bool:
        """No other request of this run can succeed either."""
        return self.kind == "refused"
