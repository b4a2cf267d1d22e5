"""The two outcomes of a request: a complete `Reply`, or a `RequestFailed`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import msgspec

from harness.answers.reasoning import final_part
from harness.client.address.endpoint import without_repeats
from harness.client.wires.wire import Call, Turn
from harness.core.contradictions import Claims
from harness.core.records import Timing, Usage
from harness.core.secret import HIDDEN, Secret

FailureKind = Literal[
    "connect",  # refused, not made in time, reset before the reply, unreachable, DNS
    "timeout",  # first-token or idle deadline
    "cut",  # the stream ended without a finish reason, or inside an event
    "malformed",  # not an event stream, bad JSON, bad UTF-8, line or body over its bound
    "server",  # 5xx, 408, an error event inside the stream
    "rate_limited",  # 429
    "too_long",  # the prompt (plus max_tokens) exceeds the context: final for this question
    "rejected",  # 400, 413, 422, 501: this payload will never be accepted
    "refused",  # 401, 403, 404: no request will be accepted; stops the run
    "runaway",  # generation far past the asked budget; not retried
]
"""Why a request failed. The kind decides whether the request is sent again and what it says about the endpoint."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A complete reply: the server sent a finish reason.

    text, reasoning: as sent; None if the server sent null. server_model, fingerprint, request_id, provider: as the
    server stated them. stated, stated_total: token counts as the server stated them, of which `usage` lacks those that
    cannot be true. notes: oddities for the log, e.g. "no [DONE]". calls: of a tool that was offered, whole ones only.
    carry: what the next request hands back of the reply.
    """

    text: str | None
    reasoning: str | None
    finish_reason: str
    usage: Usage
    timing: Timing
    server_model: str | None = None
    fingerprint: str | None = None
    request_id: str | None = None
    provider: str | None = None
    stated: Usage = Usage()
    stated_total: int | None = None
    notes: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    carry: tuple[Any, ...] = ()

    @property
    def turn(self) -> Turn:
        """What the next request of the conversation hands back."""
        return Turn(self.text, self.reasoning, self.calls, self.carry)

    def claims(self, max_tokens: int | None) -> Claims:
        """What the reply states and is, to look for contradictions. max_tokens: as sent; None: not sent."""
        return Claims(
            usage=self.stated,
            total=self.stated_total,
            finish_reason=self.finish_reason,
            n_bytes=sum(len(text.encode("utf-8", "surrogatepass")) for text in (self.text, self.reasoning) if text),
            has_reasoning=bool(self.reasoning),
            n_events=self.timing.events or 0,
            has_other=not {"tool call", "refusal"}.isdisjoint(self.notes),
            is_open=final_part(self.text or "", is_apart=bool(self.reasoning)) is None,
            max_tokens=max_tokens,
        )


def without_keys(reply: Reply, secrets: Iterable[Secret]) -> Reply:
    """`reply` with `[hidden]` in place of keys that it repeats; a note says in which fields.

    A model name that equals a whole secret stays. Some gateways choose the model by a header, and values of headers
    count as secrets; a run has to compare the model's name with the one it asked for.
    """
    secrets = tuple(secrets)
    if not secrets:
        return reply
    hidden: dict[str, Any] = {}
    for name in ("text", "reasoning", "finish_reason", "server_model", "fingerprint", "request_id", "provider"):
        text = getattr(reply, name)
        shown = without_repeats(text, secrets) if text else text
        if shown != text:
            hidden[name] = shown
    if without_repeats(arguments := "\0".join(call.arguments for call in reply.calls), secrets) != arguments:
        hidden["calls"] = tuple(
            msgspec.structs.replace(call, arguments=without_repeats(call.arguments, secrets)) for call in reply.calls
        )
    if hidden.get("server_model") == HIDDEN:
        del hidden["server_model"]
    notes = tuple(without_repeats(note, secrets) for note in reply.notes)
    if not hidden:
        return reply if notes == reply.notes else msgspec.structs.replace(reply, notes=notes)
    note = f"repeats a key of the request in its {', '.join(hidden)}: hidden"
    return msgspec.structs.replace(reply, **hidden, notes=(*notes, note))


@dataclass(eq=False)
class RequestFailed(Exception):
    """A request failed. Data for the retry policy: never a crash, never counted as a wrong answer.

    kind: see `FailureKind`. status: the HTTP status; None if none came. message: the server's words or the cause, safe
    to print, without keys. retry_after: seconds that the server asked us to wait; None if it did not, or wrote
    nonsense. sent: whether a connection stood, so that the request was sent. unanswered: whether the connection ended
    before any byte of a reply. If the connection had served an earlier request, the server has closed it since then,
    and the transport sends the request again on a new connection. in_reply: whether the server stated the failure
    inside a reply. n_events: token events that had come before, set by the sender.
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

    def __str__(self) -> str:
        return self.message

    @property
    def free(self) -> bool:
        """Whether the server made no reply, which alone is sure to cost nothing.

        It could not be reached, or refused the request by an error status before the first token.
        """
        refused = self.status is not None or self.kind in ("too_long", "rejected", "refused", "rate_limited")
        return self.kind == "connect" or (refused and not self.n_events)

    @property
    def retryable(self) -> bool:
        """Whether sending the request again can succeed."""
        return self.kind in ("connect", "timeout", "cut", "malformed", "server", "rate_limited")
