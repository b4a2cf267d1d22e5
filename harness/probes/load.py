"""Checks how the server behaves under load: the same greedy requests are sent one by one and then many at once."""

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
"""Number of requests that the load check sends at once."""

MIN_SAME = 0.5
"""Smallest fraction of greedy replies that should stay the same in a batch; a smaller fraction is a warning."""

PREFIX = (
    "is the number of a page in the log of a lighthouse. The keeper writes down each evening which ships have passed, "
    "from where the wind blew, how high the water stood and what he had for supper; he never leaves a line empty, and "
    "when nothing happened he writes that nothing happened. Whoever finds the page may ask him something."
)
"""A shared prefix that fills a few blocks of a prefix cache: vLLM caches blocks of 16 tokens, SGLang single tokens,
llama.cpp any common prefix.
"""

MAX_ODD_SAME = 1
"""If at most this many of eight repeated replies are the same, the server fails the prefix cache check. Batching and
different kernels do not explain so many differences: if each reply differed with a probability of 30%, at least seven
of eight would differ once in 800 probes.
"""


def crowd(alone: Sequence[Reply | RequestFailed], together: Sequence[tuple[int, Reply]]) -> Counter[str]:
    """Count the replies to many concurrent requests (a crowd) by how they compare with the replies to the same requests
    sent alone.

    A prompt's own reply is the one that it got when sent alone. same: equal to the own reply. swapped: equal to another
    prompt's own reply, if the two begin differently. empty: without text. cut: a prefix of the own reply, with
    finish_reason `stop`. strange: begins differently from the own reply, and is not swapped. other: begins like the own
    reply but continues differently, which batching explains.

    alone: one reply to each prompt, or its failure. together: (number of the prompt, reply) for each concurrent
    request.
    """
    own = [text_of(reply) for reply in alone]

    def kind(i: int, reply: Reply) -> str:
        """How a reply to prompt `i` under load differs from the prompt's own reply."""
        text, expected = text_of(reply), own[i]
        if text == expected:
            return "same"
        if not text:
            return "empty"
        begins_alike = text[:FIRST_CHARS] == expected[:FIRST_CHARS]
        # If the replies to two prompts begin the same way, batching may turn one into the other, which is not a swap.
        if text in own and not begins_alike:
            return "swapped"
        if expected.startswith(text) and reply.finish_reason == "stop":
            return "cut"
        return "other" if begins_alike else "strange"

    return Counter(kind(i, reply) for i, reply in together)


def _under_load(subject: Subject) -> Observation:
    """Check that concurrent requests get the same replies as requests sent one by one."""
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
        # Load is to blame only if no reply was empty without it.
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
        return warns(
            sent, f"{received}; {counts['strange']} differ from the beginning, as if they came from a different model"
        )
    return passes(sent, received)


def _prefix_cache(subject: Subject) -> Observation:
    """Send prompts that share their beginning or their end, each of them twice.

    The second request may be answered from the prefix cache, and must get the same text. Prompts that share words but
    ask different questions must not get each other's replies.
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
    """The end of a sentence on why the replies to questions that share words seem to be copies of one another; empty if
    they do not.

    rng: draws the numbers that make the shared words new, so that the cache does not answer from earlier requests.
    make_prompt: makes a prompt from a number and a question; see `_begun`. replies: the replies to the first prompts of
    this kind.
    """
    shares = [alike(replies)]
    if shares[0] < SUSPICIOUS:
        return ""
    # A weak model may answer all prompts the same way, but then also prompts that share nothing.
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
"""Thresholds for the fraction of their text that replies to eight different questions have in common at the beginning.

If the fraction reaches `SUSPICIOUS`, the questions are asked twice more. If the mean of the three fractions reaches
`COPIED`, the words that the prompts share do not explain it. For 300 healthy simulated servers whose replies depend on
the prompt's first words, one fraction in 20 is above 0.37; for replies that are copies of one another, altered by
batching, it is at least 0.34 and usually above 0.9.
"""


def _begun(number: int, text: str) -> str:
    """A prompt that begins like other prompts and ends with its own question.

    number: a new number makes the shared words new, so that no cache has them yet.
    """
    return f"{number}: {PREFIX} {text}"


def _ended(number: int, text: str) -> str:
    """A prompt that begins with its own question and ends like other prompts.

    number: a new number makes the shared words new, so that no cache has them yet.
    """
    return f"{text} Answer this; what follows {PREFIX} It is page {number}"


def _inquiry(text: str) -> Inquiry:
    """The greedy request for a short reply to this prompt."""
    return Inquiry(text, {"max_tokens": TOKENS, "temperature": 0})


def alike(replies: Sequence[Reply | RequestFailed]) -> float:
    """Return the length of two replies' common prefix as a fraction of the longer reply, averaged over all pairs of
    replies; 0 if there are no pairs.

    Only the beginning is compared, since batching that changes one token of a copy changes everything after it. Failed
    and empty replies are ignored.
    """
    texts = [text for text in map(text_of, replies) if text]
    # `commonprefix` compares characters, which is wrong for paths but right here.
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
