"""What a server says when it cannot answer: each word, place and form of a wait is read as a careful person would.

A refusal is drawn as a meaning (whose fault, how long to wait), and then written in a drawn place, word and form. The
client has to read the meaning back. For: harness.client.protocol.failures, harness.client.protocol.failures.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from typing import Any, NamedTuple

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.apis.chat import CHAT
from harness.client.interface import Deadlines, Post
from harness.client.protocol.failures import RequestFailed
from harness.client.transport import Transport
from harness.generation.batching.handing import read_result
from harness.generation.dispatch.retry import Cause, advice
from harness.testing import FakeServer, Step, delta, event, event_stream, http
from tests.budget import examples

WORDS: dict[str, tuple[int, str]] = {
    "pace": (429, "rate_limit_error rate_limit_exceeded RESOURCE_EXHAUSTED ThrottlingException too_many_requests"),
    "away": (529, "overloaded_error server_is_overloaded engine_overloaded_error"),
    "unavailable": (503, "service_unavailable_error UNAVAILABLE"),
    "chance": (500, "api_error server_error InternalServerError INTERNAL"),
    "slow": (408, "timeout_error"),
    "absent": (501, "not_supported_error NotImplementedError UNIMPLEMENTED"),
    "payload": (400, "invalid_request_error invalid_prompt INVALID_ARGUMENT BadRequestError"),
    "key": (401, "authentication_error UNAUTHENTICATED"),
    "account": (429, "insufficient_quota"),
    "unpaid": (402, "billing_error"),
    "forbidden": (403, "permission_error PERMISSION_DENIED"),
}
"""Meaning → the status, and the words of OpenAI, Anthropic, Google, vLLM, Moonshot and AWS for it."""

KINDS = {
    "pace": "rate_limited",
    "payload": "rejected",
    "absent": "rejected",
    "key": "refused",
    "account": "refused",
    "unpaid": "refused",
    "forbidden": "refused",
}
"""Meaning → the kind of failure, if it is not "server"."""

LAST_WORDS = {
    **dict.fromkeys(("pace", "away", "unavailable"), "once the server accepts requests"),
    **dict.fromkeys(("chance", "slow"), "every request fails; check the server's log"),
}
"""Meaning → when the same command helps, if every request ends so; of all others no such words are known."""

TEXTS = {"pace": ["Rate limit exceeded: free-models-per-min.", "Too many requests"], "away": ["Overloaded"]}
"""Explanations that say it all, without any word of a table."""

SECONDS = (0.12, 0.7, 2.0, 36.0, 62.5, 360.0, 3599.0, 18_000.0, 99_696.0, 900_000.0)


AHEAD_S = [0.0]
"""By how many seconds the server's clock is ahead of ours."""


def _now() -> float:
    """The Unix time by the server's clock."""
    return time.time() + AHEAD_S[0]


def _units(seconds: float) -> str:
    """`27h41m36s`, `120ms`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours:.0f}h{minutes:.0f}m{rest:g}s" if hours else f"{minutes:.0f}m{rest:g}s" if minutes else f"{rest:g}s"


def _rfc3339(seconds: float) -> str:
    return (datetime.fromtimestamp(_now(), UTC) + timedelta(seconds=seconds)).isoformat()


IN_HEADERS: dict[str, Callable[[float], dict[str, str]]] = {
    "retry-after": lambda s: {"retry_after": f"{s:g}"},
    "retry-after-ms": lambda s: {"retry_after_ms": f"{s * 1000:.0f}", "retry_after": "86400"},
    "a date": lambda s: {"retry_after": formatdate(_now() + s, usegmt=True)},
    "OpenAI": lambda s: {
        "x_ratelimit_reset_requests": "8h",
        "x_ratelimit_remaining_requests": "12",
        "x_ratelimit_reset_tokens": _units(s),
        "x_ratelimit_remaining_tokens": "0",
    },
    "Cerebras": lambda s: {"x_ratelimit_reset_requests_day": str(s), "x_ratelimit_remaining_requests_day": "0"},
    "OpenRouter": lambda s: {"x_ratelimit_reset": str(round((_now() + s) * 1000)), "x_ratelimit_remaining": "0"},
    "GitHub": lambda s: {"x_ratelimit_reset": str(round(_now() + s))},
    "Anthropic": lambda s: {"anthropic_ratelimit_tokens_reset": _rfc3339(s)},
    "the IETF": lambda s: {"ratelimit_reset": f"{s:.1f}"},
    "the IETF, 2022": lambda s: {"ratelimit": f"limit=10, remaining=0, reset={s:.0f}"},
    "the IETF, 2025": lambda s: {"ratelimit": f'"minute";r=3;t=1, "day";pk=:a=:;t={s:.0f};r=0'},
}
"""Where a status can say how long to wait. From OpenAI's on only a 429 does."""

IN_WORDS: tuple[Callable[[float], str], ...] = (
    lambda s: f"Limit 30000, Used 29500, Requested 1200. Please try again in {_units(s)}. Visit our page.",
    lambda s: f"Your quota will reset after {_units(s)}.",
    lambda s: (
        f"Please retry after {s * 1000:.0f} milliseconds" if s < 1 else f"Please wait {s:g} seconds before retrying."
    ),
    lambda s: f"limit resets at: {_rfc3339(s)}",
)

IN_FIELDS: tuple[Callable[[float], dict[str, Any]], ...] = (
    lambda s: {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{s}s"}]},
    lambda s: {"resets_in_seconds": s},
    lambda s: {"retry_after": s},
    lambda s: {"resets_at": _now() + s},
)

NONSENSE: tuple[dict[str, str], ...] = (
    *({"retry_after": value} for value in ("0", "-3", "nan", "inf", "1e400", "in a while", "99999999999999", "²")),
    {"retry_after": "Wed, 99 Foo 2026 99:99:99 GMT"},
    {"retry_after": formatdate(time.time() - 10**8)},
    {"x_ratelimit_reset": "-1"},
    {"x_ratelimit_reset_tokens": "0s"},
    {"x_ratelimit_reset": "1700000000"},
)


class Refusal(NamedTuple):
    """A refusal as sent, and what it means. wait: seconds; None: it states none. spent: of them before it is read."""

    place: str
    answer: list[Step]
    meaning: str
    wait: float | None
    spent: float = 0.0


def drawn(chance: random.Random) -> Refusal:
    """A refusal of a drawn meaning in a drawn place, word and form."""
    meaning = chance.choice([*WORDS])
    status, words = WORDS[meaning]
    error: dict[str, Any] = {"message": chance.choice(["it failed", "Provider returned error"])}
    if meaning in TEXTS and chance.random() < 0.3:
        error["message"] = chance.choice(TEXTS[meaning])
        error |= chance.choice([{}, {"type": "api_error"}])
    elif meaning != "account" and chance.random() < 0.3:
        error["code"] = chance.choice([status, str(status)])
    else:
        error[chance.choice(["code", "type", "status"][: 2 if meaning == "account" else 3])] = chance.choice(
            words.split()
        )
    places = ["status", "event", "named event", "flat event", "error line", "after text", "body", "list", "choice"]
    place = chance.choice([*places, "batch"])
    AHEAD_S[0] = 0.0 if place == "batch" else chance.choice([0.0, 3600.0, -3600.0, 9e6, -9e6])
    headers: dict[str, str] = {}
    wait = None
    if meaning in ("pace", "away", "unavailable", "chance") and chance.random() < 0.7:
        wait = chance.choice(SECONDS)
        # A moment is over before it is read if it is too near.
        n_forms = None if wait > 3 else -1
        how = chance.choice(["header", "words", "field"])
        if how == "header" and place == "status":
            forms = [*IN_HEADERS.values()] if meaning == "pace" and wait > 3 else [*IN_HEADERS.values()][:2]
            headers = chance.choice(forms)(wait)
        elif how == "field":
            error |= chance.choice(IN_FIELDS[:n_forms])(wait)
        else:
            error["message"] += ". " + chance.choice(IN_WORDS[:n_forms])(wait)
    elif place == "status" and chance.random() < 0.3:
        headers = chance.choice(NONSENSE)
    head, *body = written(place, error, status, headers)
    if AHEAD_S[0]:
        assert isinstance(head, bytes)
        head = head.replace(b"\r\n", f"\r\nDate: {formatdate(_now(), usegmt=True)}\r\n".encode(), 1)
    return Refusal(place, [head, *body], meaning, wait)


def written(place: str, error: dict[str, Any], status: int, headers: dict[str, str]) -> Iterable[Step]:
    """The reply that states `error` in this place."""
    if place == "status":
        return [http(status, {"error": error}, **headers)]
    if place in ("body", "list"):
        return [http(200, json.dumps([{"error": error}] if place == "list" else {"error": error}).encode())]
    stated = {"choices": [{"index": 0, "delta": {}, "error": error}]} if place == "choice" else {"error": error}
    stated = {"object": "error", **error} if place == "flat event" else stated
    name = b"event: error\n" if place == "named event" else b""
    line = b"error: " + json.dumps(error).encode() + b"\n\n" if place == "error line" else name + event(stated)
    return event_stream(*([delta("4")] if place == "after text" else []), line, end=())


async def readings(seeds: range) -> list[tuple[Refusal, RequestFailed | None]]:
    """Refusals drawn from these seeds, and what the client reads of each from a real server."""
    sent: list[Refusal] = []
    read: list[tuple[Refusal, RequestFailed | None]] = []
    with FakeServer(lambda _: sent[-1].answer) as server:
        transport, endpoint = Transport(), Endpoint.parse(server.base_url)
        for seed in seeds:
            begun, refusal = time.monotonic(), drawn(random.Random(seed))
            sent.append(refusal)
            failure = in_a_batch(refusal) if refusal.place == "batch" else None
            if failure is None:
                try:
                    await transport.complete(Post(endpoint, CHAT, b"{}", Deadlines(), 1 << 20))
                except RequestFailed as failed:
                    failure = failed
            read.append((refusal._replace(spent=time.monotonic() - begun), failure))
        await transport.close()
    return read


def in_a_batch(refusal: Refusal) -> RequestFailed | None:
    """What is read of a refusal in a batch's line of results."""
    body = b"".join(step for step in refusal.answer if isinstance(step, bytes))
    error = json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])["error"]
    line = json.dumps({"custom_id": "a", "response": None, "error": error}).encode()
    result = read_result(line, CHAT, started=0.0, seconds=1.0, max_body_bytes=1 << 20)
    return result.outcome if result is not None and isinstance(result.outcome, RequestFailed) else None


@pytest.mark.fuzz
@pytest.mark.timeout(14_400)
def test_every_word_place_and_wait_is_read_as_it_was_meant() -> None:
    first = random.randrange(1 << 30)
    seeds = range(first, first + examples(1200))
    for seed, (refusal, failure) in zip(seeds, asyncio.run(readings(seeds)), strict=True):
        case = f"seed {seed}: {refusal} was read as {failure!r}, {vars(failure) if failure else ''}"
        assert failure is not None, case
        assert failure.kind == KINDS.get(refusal.meaning, "server"), case
        if refusal.meaning in ("away", "unavailable", "pace"):  # such a request costs its sample no attempt
            assert failure.status == WORDS[refusal.meaning][0], case
        last = advice([Cause(failure.kind, 1, "")], [failure])
        assert (words := LAST_WORDS.get(refusal.meaning, "")) in last, case
        assert bool(words) == bool(last), case
        # A date has whole seconds.
        assert failure.retry_after == (refusal.wait and pytest.approx(refusal.wait, abs=2 + refusal.spent)), case
