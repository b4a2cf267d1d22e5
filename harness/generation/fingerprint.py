"""A server's fingerprint: the beginnings of its greedy answers to eight fixed prompts.

The fingerprint is stored with the run and compared on a resume and for each endpoint. It reveals what a server does not
state: other weights, another precision, a broken kernel. Other requests in the server's batch change greedy text now
and then, where two tokens are nearly equally likely; so some replies may differ (docs/provenance.md has the
measurement). A penalty that a server fills in changes greedy text, too, so the neutral values of the run's requests are
sent. A fingerprint records its neutral values, and later fingerprints of the run use the same; a fingerprint from
before neutral values existed is compared without them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import Any

from harness.client.address.endpoint import Endpoint
from harness.client.asker import Asker
from harness.client.interface import Transport
from harness.client.protocol.reply import RequestFailed
from harness.client.spelling import TEMPLATE_TOKENS, RequestTemplate, prompt_bytes
from harness.core import codec
from harness.core.codec import digest
from harness.core.errors import OtherModel
from harness.core.records import Usage
from harness.generation.settings import RunSettings
from harness.generation.spending import Spent
from harness.runs.manifest import Fingerprint, Provenance

PROMPTS = (
    "A train leaves at 7:40 and travels 132 km at 88 km/h. When does it arrive? Explain step by step.",
    "Write the first paragraph of a short story about a lighthouse keeper who collects clocks.",
    "List three differences between a virus and a bacterium, the most important one first.",
    "Prove that the sum of two odd integers is even.",
    "Translate into French: The old bridge was closed because the river had risen overnight.",
    "What is 17 * 23? Then say which of its digits is the largest.",
    "Write a Python function that returns the n-th Fibonacci number without recursion.",
    "Why is the sky blue? Answer as you would to a child of ten.",
)

TOKENS = 16
"""Number of new tokens for each prompt: 128 in all, beside some 200 tokens of prompts."""

MIN_SAME = 4
"""Smallest number of the eight beginnings that stay equal in any batch; fewer mean another model or set-up."""

SECONDS = 30.0
"""Seconds for all prompts of all endpoints; a beginning that is not there by then is not compared."""

FIRST_WAIT_S = 0.25
"""Seconds before a request that the server's limits refused is sent again; each further time twice as long."""

QUIET_SECONDS = 2.0
"""Seconds after which a person is told what the run waits for."""

MAX_BYTES = 1024 * 1024
"""Largest body of a reply, in bytes."""
MAX_CHARS = 400
"""Largest number of stored characters of a beginning; sixteen tokens have about sixty."""

_SAMPLING = {"temperature": 0.0, "max_tokens": TOKENS}


def version(neutral: Mapping[str, Any]) -> str:
    """The version of the prompts with these neutral values; beginnings of another version are not compared."""
    # Nothing is added for no values, so fingerprints from before neutral values keep their version.
    return digest([PROMPTS, TOKENS, *([dict(neutral)] if neutral else [])])[:12]


def same(before: Sequence[str], now: Sequence[str]) -> int:
    """How many beginnings are equal, to the last character."""
    return sum(a == b for a, b in zip(before, now, strict=True))


def comparable(provenance: Provenance) -> Fingerprint | None:
    """The run's fingerprint if it has the present version; else None."""
    fingerprint = provenance.fingerprint
    return fingerprint if fingerprint is not None and fingerprint.version == version(fingerprint.neutral) else None


def first(given: Mapping[str, list[str]], neutral: Mapping[str, Any]) -> Fingerprint:
    """The fingerprint of a run that has none yet. given: from `ask`; neutral: the neutral values in those requests."""
    url, beginnings = next(iter(given.items()))
    return Fingerprint(version=version(neutral), beginnings=beginnings, endpoint=url, neutral=dict(neutral))


def doubt(first: Fingerprint, url: str, n_same: int) -> str:
    """The warning about an endpoint that replies differently.

    n_same: beginnings that equal the run's.
    """
    return (
        f"{url} replies differently from this run's servers: only {n_same} of {len(first.beginnings)} replies at "
        f"temperature 0 begin like those of {first.endpoint}; batches alone do not change so many. Is it the same "
        f"model, with the same template and precision?"
    )


def refusal(first: Fingerprint, url: str) -> OtherModel:
    """The error that refuses to resume a run on a server that is another model."""
    return OtherModel(
        f"{url} is not the model that made this run's samples: 0 of {len(first.beginnings)} replies at temperature 0 "
        f"begin like those of {first.endpoint}, and a run never mixes models. "
    )


def neutral_values(asker: Asker) -> dict[str, Any]:
    """The neutral values for a run's first fingerprint."""
    return asker.neutral_fields(_SAMPLING)


def template(asker: Asker, neutral: Mapping[str, Any]) -> RequestTemplate:
    """The fingerprint's requests with these neutral values."""
    return asker.template(_SAMPLING, neutral)


def bodies(template: RequestTemplate) -> list[bytes]:
    """The request for each prompt, to be sent to `template.path`."""
    return [template.body_of_text(text) for text in PROMPTS]


def most(asker: Asker, neutral: Mapping[str, Any]) -> Spent:
    """The most that all replies of one fingerprint can be billed for."""
    requests = bodies(template(asker, neutral))
    return Spent.request(sum(map(_most_prompt, requests)), len(requests) * TOKENS, "at most")


def _most_prompt(body: bytes) -> int:
    return prompt_bytes(codec.decode(body)) + TEMPLATE_TOKENS


def _bill(body: bytes, usage: Usage) -> Spent:
    """What one reply was billed for: as the server states, else the most possible."""
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return Spent.request(
        _most_prompt(body) if prompt is None else prompt,
        TOKENS if completion is None else completion,
        "at most" if prompt is None or completion is None else "stated",
    )


@dataclass(frozen=True)
class FingerprintReplies:
    """The replies that have come so far. Another thread may fill it while it is read.

    beginnings: base URL → beginnings of the replies, of each endpoint that answered all prompts in time. failures: base
    URL → why its first failed request failed. billed: (base URL, number of the prompt) → what the request is billed
    for: the most possible as soon as it is sent, and the stated usage once its reply has come.
    """

    beginnings: dict[str, list[str]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    billed: dict[tuple[str, int], Spent] = field(default_factory=dict)

    @property
    def cost(self) -> Spent:
        """What all requests sent so far are billed for."""
        spent = Spent()
        for billed in self.billed.copy().values():
            spent = spent.plus(billed.for_fingerprint)
        return spent

    def in_order(self, endpoints: Sequence[Endpoint]) -> dict[str, list[str]]:
        """The beginnings, in the order of `endpoints`."""
        given = self.beginnings.copy()
        return {endpoint.base_url: given[endpoint.base_url] for endpoint in endpoints if endpoint.base_url in given}


def ask(
    settings: RunSettings,
    neutral: Mapping[str, Any],
    endpoints: Sequence[Endpoint],
    open_transport: Callable[[], Transport],
    replies: FingerprintReplies,
    on_wait: Callable[[str], None] = lambda _: None,
) -> None:
    """Ask each endpoint for its fingerprint, and put what comes into `replies`. Blocking.

    neutral: values that keep the servers' own defaults out. open_transport: opens the client that sends the requests.
    replies: also right if a signal interrupts this function. on_wait: called if this takes longer than `QUIET_SECONDS`.
    A request that the server's limits refuse is sent again while `SECONDS` last. Any other failure leaves the endpoint
    without a fingerprint. May be called with or without a running event loop.
    """

    def work() -> None:
        asyncio.run(_ask_all(settings, template(settings.asker, neutral), endpoints, open_transport, replies))

    # A thread of its own, because the caller may run an event loop.
    thread = Thread(target=work, daemon=True, name="fingerprint")
    thread.start()
    thread.join(QUIET_SECONDS)
    if thread.is_alive():
        on_wait(
            f"waiting for the fingerprint, {len(PROMPTS)} greedy replies of {TOKENS} tokens of each server, "
            f"at most {SECONDS:.0f} s (fingerprint=False (--no-fingerprint) leaves it out)"
        )
    # The deadline inside ends the thread; this bound is for a transport that does not come to its end.
    thread.join(SECONDS + 5)


async def _ask_all(
    settings: RunSettings,
    requests: RequestTemplate,
    endpoints: Sequence[Endpoint],
    open_transport: Callable[[], Transport],
    replies: FingerprintReplies,
) -> None:
    """Ask all endpoints for their fingerprints, and put what came into `replies`.

    open_transport: opens the client that sends the requests.
    """
    transport = open_transport()
    deadlines = replace(settings.deadlines, first_token=SECONDS, idle=SECONDS)
    ends = time.monotonic() + SECONDS

    async def beginning(endpoint: Endpoint, number: int, body: bytes) -> str:
        """The beginning of the reply to prompt `number`, which is sent again while the server's limits refuse it."""
        url, wait = endpoint.base_url, FIRST_WAIT_S
        while True:
            # A request that the time limit or a signal ends states no usage, but the server has begun its reply.
            replies.billed[url, number] = _bill(body, Usage())
            try:
                reply = await transport.complete(endpoint, requests.path, body, deadlines, MAX_BYTES)
                replies.billed[url, number] = _bill(body, reply.usage)
                # Empty beginnings would count as equal to each other.
                if not reply.text and not reply.reasoning:
                    raise RequestFailed("cut", "an empty reply")
                return f"{reply.reasoning or ''}{reply.text or ''}"[:MAX_CHARS]
            except RequestFailed as failed:
                if failed.free:
                    del replies.billed[url, number]
                limited = failed.kind == "rate_limited" or (failed.retryable and failed.retry_after is not None)
                pause = max(wait, failed.retry_after or 0.0)
                if not limited or time.monotonic() + pause >= ends:
                    replies.failures.setdefault(url, failed.message)
                    raise
            await asyncio.sleep(pause)
            wait *= 2

    async def ask_endpoint(endpoint: Endpoint) -> None:
        asked = (beginning(endpoint, number, body) for number, body in enumerate(bodies(requests)))
        # A refused request must not cut off the others in flight, which are billed all the same.
        beginnings = await asyncio.gather(*asked, return_exceptions=True)
        if not any(isinstance(each, BaseException) for each in beginnings):
            replies.beginnings[endpoint.base_url] = [str(each) for each in beginnings]

    try:
        async with asyncio.timeout(SECONDS):
            # An endpoint that is down must not take the others' beginnings with it.
            await asyncio.gather(*(ask_endpoint(endpoint) for endpoint in endpoints), return_exceptions=True)
    except TimeoutError:
        pass
    finally:
        await transport.close()
