"""Compares log-probabilities before a seam with those from when the tokens were written. No I/O.

A seam is the place where a half-written reply is continued. A continuation from the same token ids is exact if the same
model wrote them and reads them as it did then. The server's token count does not show that. The log-probabilities of
the last tokens do, if the run asks for them: each of these tokens is requested again, as the next token after those
before it, among the likeliest.

vLLM's `prompt_logprobs` and `echo` are not used: both compute all logits for every token of the prompt at once and
without the prefix cache, which takes gigabytes of GPU memory at 8k tokens and returns megabytes. One token after a
prefix costs what the continuation needs anyway, and the continuation finds the prefix in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import msgspec

from harness.client.spelling import RequestTemplate
from harness.core.choices import SalvageMode
from harness.generation.continuing import Continuation, WrittenAnew, by_token_ids
from harness.generation.settings import Salvage

BOUND_NATS = 0.25
"""Mean absolute difference in nats above which the server counts as another model.

See docs/salvage.md, "At the seam".
"""

MAX_SENT = 65_536
"""Largest number of tokens in all prompts of one comparison.

A server without a prefix cache computes all of them. 16 tokens are compared behind up to 4k tokens, two behind 32k.
"""

LIKELIEST = 20
"""Number of likeliest tokens that a server is asked to list at each place; vLLM lists at most this many by default."""

UNLIKE = {"exact": "asked anew", "near": "went on as near"}
"""Salvage mode → the note on a reply whose beginning another model seems to have written."""


class Unlike(WrittenAnew):
    """The server's log-probabilities of the last tokens differ from those when they were written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBefore:
    """A token before the seam. n_before: number of ids before it. token: its id. logprob: as it was when written."""

    n_before: int
    token: int
    logprob: float


def tokens_before_seam(going_on: Continuation, salvage: Salvage) -> list[TokenBefore]:
    """The tokens before the seam (the place where a reply is continued) that are to be compared, in text order.

    Empty if the continuation is not exact, or the engine's replies do not name token ids.
    """
    prompt, logprobs = going_on.prompt, going_on.begun.logprobs
    if not going_on.seam.exact or not prompt or not salvage.dialect.names_ids:
        return []
    # As many as have a stored log-probability, and as `MAX_SENT` allows.
    n = min(len(logprobs), going_on.seam.tokens, MAX_SENT // len(prompt))
    begin = len(prompt) - n
    return [
        TokenBefore(n_before=n_before, token=prompt[n_before], logprob=logprob)
        for n_before, logprob in zip(range(begin, len(prompt)), logprobs[len(logprobs) - n :], strict=True)
    ]


def bodies(
    tokens: Sequence[TokenBefore], prompt: Sequence[int], template: RequestTemplate, salvage: Salvage
) -> Iterator[bytes]:
    """Return the request for each of these tokens: it asks for one token after the ids that come before.

    It has the run's sampling, since some servers state probabilities after the cuts of top_p and the like. tokens: the
    tokens before the seam. prompt: the token ids that the continuation sends.
    """
    by_ids = by_token_ids(template, salvage)
    body = {**by_ids.spelling.extra_body, "logprobs": LIKELIEST, "return_tokens_as_token_ids": True}
    single = replace(by_ids, spelling=replace(by_ids.spelling, stream=False, token_ids=False, extra_body=body))
    return (single.body_after_tokens(prompt[: token.n_before], None, 1) for token in tokens)


def difference(token: TokenBefore, likeliest: Mapping[str, float]) -> float | None:
    """How far the token's log-probability is from its earlier one, in nats; None if unknown.

    likeliest: token → its log-probability now. A token that is not listed there is less likely than all listed tokens,
    so the distance to the least likely of them is a lower bound.
    """
    logprob = likeliest.get(f"token_id:{token.token}")
    if logprob is not None:
        return abs(logprob - token.logprob)
    if len(likeliest) < LIKELIEST or not all(name.startswith("token_id:") for name in likeliest):
        return None
    # A server may list the token that it drew beside the likeliest.
    least = sorted(likeliest.values(), reverse=True)[LIKELIEST - 1]
    return max(0.0, token.logprob - least)


def with_differences(going_on: Continuation, differences: Sequence[float], mode: SalvageMode) -> Continuation:
    """`going_on` with the differences noted in its seam.

    Raises `Unlike` if they are too large to be exact, unless `mode` allows near.
    """
    if not differences:
        return going_on
    mean = fmean(differences)
    if mean > BOUND_NATS and mode != "near":
        raise Unlike(f"the server's log-probabilities of the last {len(differences)} tokens differ by {mean:.2f} nats")
    seam = msgspec.structs.replace(
        going_on.seam, exact=mean <= BOUND_NATS, difference=round(mean, 6), compared=len(differences)
    )
    return replace(going_on, seam=seam)
