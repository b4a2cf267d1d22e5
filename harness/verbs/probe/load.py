"""Checks how the server behaves under load: the same greedy requests one by one and then many at once."""

from __future__ import annotations

import random
import statistics
import time

from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.inert import quoted
from harness.verbs.probe.asking import Inquiry
from harness.verbs.probe.findings import Check, Seen, sound, spoils, warns
from harness.verbs.probe.subject import STORY, Subject

PROMPTS = (
    STORY,
    "Prove that the sum of two odd integers is even.",
    "List three differences between a virus and a bacterium.",
    "Why is the sky blue? Answer as you would to a child of ten.",
    "What is 17 * 23? Explain step by step.",
    "Write a function that returns the n-th Fibonacci number.",
    "Describe the taste of a lemon to somebody who never had one.",
    "Name the planets, the largest one first.",
)

TOKENS = 12
AT_ONCE = 64

MIN_SAME = 0.5
"""Fraction of greedy replies that should stay the same in a batch; fewer is a warning."""

LONGEST_WAIT_S = 300.0

PREFIX = (
    "is the number of a page in the log of a lighthouse. The keeper writes down each evening which ships have passed, "
    "from where the wind blew, how high the water stood and what he had for supper; he never leaves a line empty, and "
    "when nothing happened he writes that nothing happened. Whoever finds the page may ask him something."
)
"""A shared beginning long enough for a block or two of a prefix cache: vLLM keeps 16 tokens a block, SGLang one token,
llama.cpp any common beginning.
"""

MAX_ODD_SAME = 1
"""With at most this many of eight replies the same, batches and other kernels no longer explain the difference (see
`reference`).
"""


def _under_load(subject: Subject) -> Seen:
    """Send the same greedy requests one by one and then at once; compare texts, speed and failures."""
    sent = f"{len(PROMPTS)} greedy requests of {TOKENS} tokens one by one, then {AT_ONCE} at once"
    requests = [Inquiry(text, {"max_tokens": TOKENS, "temperature": 0}) for text in PROMPTS]
    alone = subject.streamed(requests)
    begun = time.monotonic()
    together = subject.streamed([requests[i % len(requests)] for i in range(AT_ONCE)], at_once=AT_ONCE)
    seconds = time.monotonic() - begun
    failed = [reply for reply in [*alone, *together] if isinstance(reply, RequestFailed)]
    pairs = [
        (alone[i % len(requests)], reply)
        for i, reply in enumerate(together)
        if isinstance(reply, Reply) and isinstance(alone[i % len(requests)], Reply)
    ]
    n = len(pairs)
    same = sum(_text(first) == _text(second) for first, second in pairs)
    empty = sum(bool(_text(first)) and not _text(second) for first, second in pairs)
    new = sum(reply.usage.completion_tokens or TOKENS for reply in together if isinstance(reply, Reply))
    came = (
        f"{same} of {n} replies word by word the same; {_median(alone):.2f} s a reply alone, {_median(together):.2f} s "
        f"among {AT_ONCE}, {new / max(seconds, 1e-9):,.0f} tokens/s; {len(failed)} failed"
    )
    # Before the failures: an empty reply spoils a score without a word, a refusal is only asked again.
    if empty:
        return spoils(sent, f"{came}; {empty} replies came empty under load")
    if failed:
        waits = [failure.retry_after for failure in failed if failure.kind == "rate_limited"]
        odd = [wait for wait in waits if wait is None or wait > LONGEST_WAIT_S]
        about = f"; {len(odd)} of {len(waits)} refusals (429) state no sensible wait" if odd else ""
        return warns(sent, f"{came}, the first: {quoted(failed[0].message)}{about}")
    if subject.server.deterministic and same < n:
        return warns(sent, f"{came}; the server promises texts independent of other requests, but breaks this")
    if n and same < MIN_SAME * n:
        return warns(sent, came)
    return sound(sent, came)


def _prefix_cache(subject: Subject) -> Seen:
    """Send each request twice: the second may be answered from the prefix cache, and must bring the same text."""
    n_words = len(PREFIX.split())
    sent = f"{len(PROMPTS)} greedy requests of {TOKENS} tokens after {n_words} new words, then the same again"
    # A random number makes each beginning new: the first requests cannot hit the cache, the second ones can.
    rng = random.Random(subject.seed)  # noqa: S311 - no secret
    subject.seed += 1
    prompts = [f"{rng.randrange(10**9)}: {PREFIX} {text}" for text in PROMPTS]
    requests = [Inquiry(text, {"max_tokens": TOKENS, "temperature": 0}) for text in prompts]
    cold, warm = subject.streamed(requests), subject.streamed(requests)
    pairs = [(a, b) for a, b in zip(cold, warm, strict=True) if isinstance(a, Reply) and isinstance(b, Reply)]
    if len(pairs) < len(PROMPTS):
        failed = next(reply for reply in [*cold, *warm] if isinstance(reply, RequestFailed))
        return warns(sent, f"{len(PROMPTS) - len(pairs)} of them failed: {quoted(failed.message)}")
    same = sum(_text(a) == _text(b) for a, b in pairs)
    hits = [sum(reply.usage.cached_tokens or 0 for reply in side) for side in zip(*pairs, strict=True)]
    counted = any(reply.usage.cached_tokens is not None for pair in pairs for reply in pair)
    n_prompt = sum(reply.usage.prompt_tokens or 0 for reply, _ in pairs)
    cached = f"{hits[0]} and {hits[1]} of {n_prompt} prompt tokens from the cache; " if counted else ""
    waits = [  # Seconds to the first token, without the cache and with it.
        statistics.median(reply.timing.first_token or 0.0 for reply in side) for side in zip(*pairs, strict=True)
    ]
    came = (
        f"{same} of {len(pairs)} replies word by word the same; {cached}"
        f"{waits[0]:.2f} s to the first token without the cache, {waits[1]:.2f} s with it"
    )
    if same <= MAX_ODD_SAME:
        return spoils(sent, came)
    return warns(sent, came) if same < MIN_SAME * len(pairs) else sound(sent, came)


def _text(reply: Reply | RequestFailed) -> str:
    return (reply.reasoning or "") + (reply.text or "") if isinstance(reply, Reply) else ""


def _median(replies: list[Reply | RequestFailed]) -> float:
    return statistics.median([reply.timing.total for reply in replies if isinstance(reply, Reply)] or [0.0])


CHECKS = (
    Check(
        name="load", group="load", look=_under_load, quick=False,
        why="Replies that fail or come empty under load are lost samples; changed texts show that runs differ.",
        mend="Lower the concurrency; use the engine's deterministic mode where greedy text has to repeat.",
    ),
    Check(
        name="prefix cache", group="load", look=_prefix_cache, quick=False,
        why="The second sample of a question reuses the cached prompt of the first: a cache that mixes prompts up "
        "answers another question.",
        mend="Start the engine without prefix caching and probe again; update the engine.",
    ),
)  # fmt: skip
