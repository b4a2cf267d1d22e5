"""A server's fingerprint: the beginnings of its greedy answers to eight fixed prompts.

The fingerprint is stored with the run and compared on a resume and for each endpoint. It reveals what a server does not
report: different weights, a different precision, a broken kernel. Other requests in the server's batch occasionally
change greedy text where two tokens are almost equally likely, so some replies may differ (docs/provenance.md has the
measurement). A default penalty that a server applies also changes greedy text, so the neutral values of the run's
requests are sent. A fingerprint records its neutral values, and the run's later fingerprints use the same ones; a
fingerprint from before neutral values existed is compared without them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import Any

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Post, Transport
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.request_fields import TEMPLATE_TOKENS, RequestTemplate, prompt_bytes
from harness.core import channel, codec
from harness.core.codec import digest
from harness.core.records import Usage
from harness.generation.run_progress import Spent
from harness.generation.settings import RunSettings
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
"""Number of new tokens per prompt: 128 in total, in addition to about 200 prompt tokens."""

MIN_SAME = 4
"""Minimum number of the eight beginnings that stay equal in any batch; fewer mean a different model or setup."""

SECONDS = 30.0
"""Seconds for all prompts of all endpoints; a beginning that has not arrived by then is not compared."""

MAX_BYTES = 1024 * 1024
"""Largest body of a reply, in bytes."""
MAX_CHARS = 400
"""Maximum number of characters stored per beginning; sixteen tokens have about sixty."""

SAMPLING = {"temperature": 0.0, "max_tokens": TOKENS}
"""The sampling of all fingerprints."""


def version(neutral: Mapping[str, Any]) -> str:
    """The version of the prompts with these neutral values; beginnings of different versions are not compared."""
    # Empty values add nothing, so fingerprints from before neutral values keep their version.
    return digest([PROMPTS, TOKENS, *([dict(neutral)] if neutral else [])])[:12]


def n_equal(before: Sequence[str], now: Sequence[str]) -> int:
    """Number of beginnings that are equal to the last character."""
    return sum(a == b for a, b in zip(before, now, strict=True))


def comparable(provenance: Provenance) -> Fingerprint | None:
    """The run's fingerprint if it has the current version, else None."""
    fingerprint = provenance.fingerprint
    return fingerprint if fingerprint is not None and fingerprint.version == version(fingerprint.neutral) else None


def new_fingerprint(given: Mapping[str, list[str]], neutral: Mapping[str, Any]) -> Fingerprint:
    """The fingerprint of a run that has none yet. given: from `ask`. neutral: the neutral values in its requests."""
    url, beginnings = next(iter(given.items()))
    return Fingerprint(version=version(neutral), beginnings=beginnings, endpoint=url, neutral=dict(neutral))


def bodies(settings: RunSettings, template: RequestTemplate) -> list[bytes]:
    """The request for each prompt, then that for the first prompt with the tool, if the run offers one."""
    offers = [offer for name in settings.benchmarks if (offer := settings.template(name).offer)]
    tooled = [replace(template, offer=offer).body_of_text(PROMPTS[0]) for offer in offers[:1]]
    return [*(template.body_of_text(text) for text in PROMPTS), *tooled]


def max_spent(settings: RunSettings, neutral: Mapping[str, Any], n: int) -> Spent:
    """The most that can be billed for the fingerprint requests of `n` endpoints."""
    template = settings.asker.template(SAMPLING, neutral)
    return Spent().add(*[_billed(body, None) for body in bodies(settings, template) * n])


def _billed(body: bytes, reply: Reply | BaseException | None) -> Spent:
    """What one request was billed for: as reported by the server, or else the maximum possible."""
    if isinstance(reply, RequestFailed) and reply.free:
        return Spent()
    usage = reply.usage if isinstance(reply, Reply) else Usage()
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return Spent(
        prompt_bytes(codec.decode(body)) + TEMPLATE_TOKENS if prompt is None else prompt,
        TOKENS if completion is None else completion,
        int(prompt is None or completion is None),
        usage.cached_tokens or 0,
    )


@dataclass(slots=True)
class Fingerprints:
    """The fingerprints of some endpoints.

    beginnings: base URL → beginnings of the replies, of each endpoint that answered all prompts. failures: base URL →
    why one of its requests failed, or what is missing in its replies. cost: what all requests were billed for.
    toolless: the endpoints that count no more prompt tokens with the tool than without it, because a template or a
    gateway drops the tool.
    """

    beginnings: dict[str, list[str]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    cost: Spent = field(default_factory=Spent)
    toolless: list[str] = field(default_factory=list)


def _drops_tool(replies: Sequence[Reply | BaseException]) -> bool:
    """Whether the reply to the first prompt with the tool counts no more prompt tokens than the reply without it."""
    ends = (replies[0], *replies[len(PROMPTS) :])
    counts = [count for each in ends if isinstance(each, Reply) and (count := each.usage.prompt_tokens) is not None]
    return len(counts) == 2 and counts[1] <= counts[0]


def ask(
    settings: RunSettings,
    neutral: Mapping[str, Any],
    endpoints: Sequence[Endpoint],
    open_transport: Callable[[], Transport],
    former: Sequence[str] = (),
) -> Fingerprints:
    """Ask each endpoint for its fingerprint. Blocking; may be called with or without a running event loop.

    neutral: values that override the servers' own defaults. open_transport: opens the client that sends the requests.
    former: the run's beginnings; an endpoint whose beginnings differ from them is asked twice, and gets no fingerprint
    if its replies differ. A failed request is not retried; its endpoint gets no fingerprint either.
    """
    taken, requests = Fingerprints(), settings.asker.template(SAMPLING, neutral)
    contents = bodies(settings, requests)
    deadlines = replace(settings.deadlines, connect=SECONDS, first_token=SECONDS, idle=SECONDS)

    async def ask_endpoint(transport: Transport, endpoint: Endpoint) -> None:
        """Add to `taken` what one endpoint was billed for, and its beginnings if all requests returned text."""
        api = requests.spelling.api
        sent = (transport.complete(Post(endpoint, api, body, deadlines, MAX_BYTES)) for body in contents)
        # A rejected request must not cut off the others in flight, which are billed in any case.
        replies = await asyncio.gather(*(asyncio.wait_for(reply, SECONDS) for reply in sent), return_exceptions=True)
        for body, reply in zip(contents, replies, strict=True):
            taken.cost = taken.cost.add(_billed(body, reply))
            # A late reply is reported in the same way whether the request's own deadline or ours expired first.
            if isinstance(reply, RequestFailed) and reply.kind != "timeout":
                taken.failures[endpoint.base_url] = reply.message
        if _drops_tool(replies):
            taken.toolless.append(endpoint.base_url)
        given = [reply for reply in replies[: len(PROMPTS)] if isinstance(reply, Reply)]
        texts = [f"{reply.reasoning or ''}{reply.text or ''}"[:MAX_CHARS] for reply in given]
        # Empty beginnings would count as equal to each other.
        if len([*filter(None, texts)]) == len(PROMPTS):
            taken.beginnings[endpoint.base_url] = texts

    async def ask_all() -> None:
        transport = open_transport()
        try:
            await asyncio.gather(*(ask_endpoint(transport, endpoint) for endpoint in endpoints))
        finally:
            await transport.close()

    # In a separate thread, because the caller may be running an event loop.
    thread = Thread(target=lambda: asyncio.run(ask_all()), daemon=True, name="fingerprint")
    thread.start()
    with channel.waiting(
        f"the fingerprint ({len(PROMPTS)} greedy replies of {TOKENS} tokens from each server), for up to "
        f"{SECONDS:.0f} s (`fingerprint=False` skips it)"
    ):
        # The inner deadline ends the thread; this one is for a transport that never finishes.
        thread.join(SECONDS + 5)
    given = taken.beginnings
    unlike = [each for each in endpoints if former and n_equal(former, given.get(each.base_url, former)) < MIN_SAME]
    if unlike:
        again = ask(settings, neutral, unlike, open_transport)
        taken.cost = taken.cost.add(again.cost)
        for url, beginnings in again.beginnings.items():
            if (n := n_equal(given[url], beginnings)) < MIN_SAME:
                del given[url]
                taken.failures[url] = (
                    f"when the prompts were sent twice at temperature 0, only {n} of {len(PROMPTS)} replies matched"
                )
    return taken
