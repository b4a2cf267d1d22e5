"""Checks how the server behaves under load: the same greedy requests one by one and then many at once."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from os.path import commonprefix

from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.core.inert import quoted
from harness.probes.findings import EMPTY, Check, Observation, fails, passes, too_slow, untested, warns
from harness.probes.inquiries import Inquiry, text_of
from harness.probes.subject import FIRST_CHARS, PROMPTS, Subject

TOKENS = 12
"""Number of new tokens of each reply."""

AT_ONCE = 64
"""Number of requests that the check of load sends at once."""

MIN_SAME = 0.5
"""Smallest fraction of greedy replies that should stay the same in a batch; a smaller fraction is a warning."""

PREFIX = (
    "is the number of a page in the log of a lighthouse. The keeper writes down each evening which ships have passed, "
    "from where the wind blew, how high the water stood and what he had for supper; he never leaves a line empty, and "
    "when nothing happened he writes that nothing happened. Whoever finds the page may ask him something."
)
"""A shared beginning that fills a few blocks of a prefix cache: vLLM caches blocks of 16 tokens, SGLang single tokens,
llama.cpp any common beginning.
"""

MAX_ODD_SAME = 1
"""If at most this many of eight repeated replies are the same, the server fails the check of the prefix cache. Batching
and other kernels do not explain so many differences: if each reply differed with a chance of 30%, seven of eight would
differ once in 800 probes.
"""


def crowd(alone: Sequence[Reply | RequestFailed], together: Sequence[tuple[int, Reply]]) -> Counter[str]:
    """Count the replies to many requests at once (a crowd) by how they compare with those to the same requests alone.

    A prompt's own reply is the reply that it got alone. same: equal to the own reply. swapped: equal to the own reply
    of another prompt, if the two begin differently. empty: without text. cut: a beginning of the own reply, with
    finish_reason `stop`. strange: another beginning than the own reply has, and not swapped. other: the beginning of
    the own reply and another continuation, which a batch makes.

    alone: one reply of each prompt, or its failure. together: (number of the prompt, reply) of each request at once.
    """
    own = [text_of(reply) for reply in alone]

    def kind(i: int, reply: Reply) -> str:
        """How a reply to prompt `i` under load differs from that of the prompt alone."""
        text, expected = text_of(reply), own[i]
        if text == expected:
            return "same"
        if not text:
            return "empty"
        begins_alike = text[:FIRST_CHARS] == expected[:FIRST_CHARS]
        # If the replies to two prompts begin alike, a batch may turn one into the other, which is no swap.
        if text in own and not begins_alike:
            return "swapped"
        if expected.startswith(text) and reply.finish_reason == "stop":
            return "cut"
        return "other" if begins_alike else "strange"

    return Counter(kind(i, reply) for i, reply in together)


def _under_load(subject: Subject) -> Observation:
    """Check that many requests at once bring the same replies as one by one."""
    sent = f"{len(PROMPTS)} greedy requests for {TOKENS} tokens each, first one at a time, then {AT_ONCE} concurrently"
    requests = [_inquiry(text) for text in PROMPTS]
    alone = subject.streamed(requests)
    together = subject.streamed([requests[i % len(requests)] for i in range(AT_ONCE)], at_once=AT_ONCE)
    failed = [reply for reply in [*alone, *together] if isinstance(reply, RequestFailed)]
    # Prompts whose request failed when sent alone are left out: there is nothing to compare their replies with.
    numbered = ((i % len(requests), reply) for i, reply in enumerate(together))
    pairs = [(i, reply) for i, reply in numbered if isinstance(reply, Reply) and isinstance(alone[i], Reply)]
    counts = crowd(alone, pairs)
    received = (
        f"{counts['same']} of {len(pairs)} replies are identical; {_median(alone):.2f} s per reply one at a time, "
        f"{_median(together):.2f} s with {AT_ONCE} concurrent requests; {len(failed)} failed"
    )
    # Faults of replies are reported before failures: an empty reply invalidates a score silently, but a run repeats a
    # request that failed.
    if counts["swapped"]:
        return fails(sent, f"{received}; {counts['swapped']} of them belong to a different prompt")
    if counts["empty"]:
        received += f"; {counts['empty']} replies were empty under load"
        # The load is to blame only if no reply came empty without it.
        if n_lost := subject.server.n_lost:
            return untested(
                sent, f"{n_lost} replies were also empty when requested one at a time; see `{EMPTY}` ({received})"
            )
        return fails(sent, received)
    if counts["cut"]:
        return fails(sent, f"{received}; {counts['cut']} of them were truncated under load but have finish_reason stop")
    if failed and all(failure.kind == "timeout" for failure in failed):
        return too_slow(sent, f"{received}, the first: {failed[0].message}")
    if failed:
        return warns(sent, f"{received}, the first: {quoted(failed[0].message)}")
    if counts["same"] < MIN_SAME * len(pairs):
        if doubt := subject.doubt_of_repeats(requests):
            return untested(sent, f"{received}; {doubt}")
        return warns(sent, f"{received}; {counts['strange']} begin differently, as if they came from a different model")
    return passes(sent, received)


def _prefix_cache(subject: Subject) -> Observation:
    """Send prompts that share their beginning or their end, each twice.

    The second request may be answered from the prefix cache, and must bring the same text. Prompts that share words and
    differ in the question must not bring each other's replies.
    """
    n, shared = 2 * len(PROMPTS), len(PREFIX.split())
    sent = f"{n} greedy requests for {TOKENS} tokens that share {shared} new words; half of them are then repeated"
    # A random number makes the shared words new, so that only the repeated requests can hit the cache.
    rng = random.Random(subject.new_seeds(1)[0])  # noqa: S311 - no secret
    number = rng.randrange(10**9)
    begun_alike = [_begun(number, text) for text in PROMPTS]
    requests = [_inquiry(text) for text in [*begun_alike, *(_ended(number, text) for text in PROMPTS)]]
    cold, warm = subject.streamed(requests), subject.streamed(requests[: len(PROMPTS)])
    pairs = [(a, b) for a, b in zip(cold, warm, strict=False) if isinstance(a, Reply) and isinstance(b, Reply)]
    if len(pairs) < len(PROMPTS):
        failed = next(reply for reply in [*cold, *warm] if isinstance(reply, RequestFailed))
        if failed.kind == "timeout":
            return too_slow(sent, failed.message)
        return warns(sent, f"{len(PROMPTS) - len(pairs)} of them failed: {quoted(failed.message)}")
    same = sum(text_of(a) == text_of(b) for a, b in pairs)
    received = f"{same} of {len(pairs)} replies are identical"
    halves = (("beginning", _begun, cold[: len(PROMPTS)]), ("end", _ended, cold[len(PROMPTS) :]))
    for where, make_prompt, half in halves:
        if copies := _copies(subject, rng, make_prompt, half):
            return fails(sent, f"{received}; replies to {len(PROMPTS)} questions with the same {where} {copies}")
    if same >= MIN_SAME * len(pairs):
        return passes(sent, received)
    if doubt := subject.doubt_of_repeats(requests[: len(PROMPTS)]):
        return untested(sent, f"{received}; {doubt}")
    return fails(sent, received) if same <= MAX_ODD_SAME else warns(sent, received)


def _copies(
    subject: Subject,
    rng: random.Random,
    make_prompt: Callable[[int, str], str],
    replies: Sequence[Reply | RequestFailed],
) -> str:
    """Why the replies to questions that share words are copies of one another, as the end of a sentence; empty if they
    are not.

    rng: draws the numbers that make the shared words new, so that the cache does not answer from earlier requests.
    make_prompt: of a number and a question; see `_begun`. replies: to the first prompts of this kind.
    """
    shares = [alike(replies)]
    if shares[0] < SUSPICIOUS:
        return ""
    # A weak model may answer all prompts alike, but then also prompts that share nothing.
    apart = alike(subject.streamed([_inquiry(make_prompt(rng.randrange(10**9), text)) for text in PROMPTS]))
    if apart >= SUSPICIOUS:
        return ""
    for _ in range(2):
        number = rng.randrange(10**9)
        shares.append(alike(subject.streamed([_inquiry(make_prompt(number, text)) for text in PROMPTS])))
    share = statistics.fmean(shares)
    if share < COPIED:
        return ""
    return (
        f"share {share:.0%} of their text, but only {apart:.0%} if the prompts have nothing in common: each question "
        "gets the reply to a different prompt (seen three times)"
    )


SUSPICIOUS, COPIED = 0.3, 0.6
"""Bounds on the fraction of their text that replies to eight different questions have in common at their beginning.

If the fraction reaches `SUSPICIOUS`, the questions are asked twice more. If the mean of the three fractions reaches
`COPIED`, the words that the prompts share do not explain it. In 300 healthy simulated servers whose replies depend on
the prompt's first words, one fraction in 20 is above 0.37; replies that are copies of one another, changed by a batch,
have at least 0.34 and mostly more than 0.9.
"""


def _begun(number: int, text: str) -> str:
    """A prompt whose beginning other prompts share and whose question at the end is its own.

    number: a new number makes the shared words new, so that no cache has them yet.
    """
    return f"{number}: {PREFIX} {text}"


def _ended(number: int, text: str) -> str:
    """A prompt whose question at the beginning is its own and whose end other prompts share.

    number: a new number makes the shared words new, so that no cache has them yet.
    """
    return f"{text} Answer this; what follows {PREFIX} It is page {number}"


def _inquiry(text: str) -> Inquiry:
    """The greedy request of a short reply to this prompt."""
    return Inquiry(text, {"max_tokens": TOKENS, "temperature": 0})


def alike(replies: Sequence[Reply | RequestFailed]) -> float:
    """Return the fraction of the longer reply for which two replies agree from their beginning, as a mean over all
    pairs of replies; 0 if there is no pair.

    Only the beginning is compared, since a batch that changes one token of a copy changes all that follows. Failed and
    empty replies are left out.
    """
    texts = [text for text in map(text_of, replies) if text]
    # `commonprefix` compares characters, which is wrong for paths and right here.
    shares = [len(commonprefix(pair)) / max(map(len, pair)) for pair in combinations(texts, 2)]  # noqa: RUF071
    return statistics.fmean(shares) if shares else 0.0


def _median(replies: list[Reply | RequestFailed]) -> float:
    """The median time of a reply, in seconds; 0 if all failed."""
    return statistics.median([reply.timing.total for reply in replies if isinstance(reply, Reply)] or [0.0])


CHECKS = (
    Check(
        name="load",
        group="load",
        look=_under_load,
        by_text=True,
        quick=False,
        tokens=3_000,
        why="Replies that fail or are empty under load mean lost samples; if outputs change under load, runs are "
        "not reproducible.",
        fix="Lower the concurrency. If greedy output must be reproducible, use the engine's deterministic mode.",
    ),
    Check(
        name="prefix cache",
        group="load",
        look=_prefix_cache,
        by_text=True,
        quick=False,
        tokens=3_500,
        why="The second sample of a question reuses the prompt cached for the first; if the cache mixes up "
        "prompts, the "
        "reply answers a different question.",
        fix="Update the engine, or disable prefix caching, and then probe again.",
    ),
)
