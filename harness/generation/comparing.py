"""What a server says of the tokens before a seam, beside what was said when they were written. No I/O.

A continuation over the very ids is exact if the model is the one that wrote them, and reads them as it did. The
server's count of tokens does not show that; the log-probabilities of the last ones do, where a run asks for them: each
is asked for again, as the next token after those before it, among the likeliest.

Not by vLLM's `prompt_logprobs`, nor by `echo`: they work out the vocabulary for every token of the prompt, at once and
without the prefix cache, which takes gigabytes of the GPU at 8k tokens, and answers with megabytes. One token after a
prefix costs what the continuation needs anyway, and that finds it in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import msgspec

from harness.client.spelling import RequestTemplate
from harness.core.choices import SalvageMode
from harness.generation.continuing import Continuation, Salvage, WrittenAnew, over_ids

BOUND_NATS = 0.25
"""Mean absolute difference above which another model goes on. See docs/salvage.md, "At the seam"."""

MAX_SENT = 65_536
"""Tokens of all prompts of one comparison: what it costs a server without a prefix cache. So 16 places up to 4k tokens,
two at 32k."""

LIKELIEST = 20
"""Tokens that a server is asked to list in each place: as many as vLLM lists unless told otherwise."""

UNLIKE = {"exact": "asked anew", "near": "went on as near"}
"""Notes on a reply whose beginning another model seems to have written, by what became of it under which mode."""


class Unlike(WrittenAnew):
    """The server says something else of the last tokens than was said when they were written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBefore:
    """A token before the seam. n_before: ids before it; logprob: what was said of it."""

    n_before: int
    token: int
    logprob: float


def tokens_before_seam(going_on: Continuation, salvage: Salvage) -> list[TokenBefore]:
    """What can be compared, in the order of the text, so that each prompt begins with the one before."""
    prompt, logprobs = going_on.prompt, going_on.begun.logprobs
    if not going_on.seam.exact or not prompt or not salvage.dialect.names_ids:
        return []
    n = min(len(logprobs), going_on.seam.tokens, MAX_SENT // len(prompt))
    begin = len(prompt) - n
    return [
        TokenBefore(n_before=n_before, token=prompt[n_before], logprob=logprob)
        for n_before, logprob in zip(range(begin, len(prompt)), logprobs[len(logprobs) - n :], strict=True)
    ]


def bodies(
    seams: Sequence[TokenBefore], prompt: Sequence[int], template: RequestTemplate, salvage: Salvage
) -> Iterator[bytes]:
    """The request for each of `asked`. The sampling is the run's: some servers state what is left after it."""
    onward = over_ids(template, salvage)
    body = {**onward.spelling.extra_body, "logprobs": LIKELIEST, "return_tokens_as_token_ids": True}
    single = replace(onward, spelling=replace(onward.spelling, stream=False, token_ids=False, extra_body=body))
    return (single.with_prompt(prompt[: token.n_before], None, 1) for token in seams)


def difference(token: TokenBefore, likeliest: Mapping[str, float]) -> float | None:
    """Nats between what was said of the token and what is said now; None where that cannot be told.

    A token that is not among the likeliest is less likely than they are: then it is that much at least.
    """
    logprob = likeliest.get(f"token_id:{token.token}")
    if logprob is not None:
        return abs(logprob - token.logprob)
    if len(likeliest) < LIKELIEST or not all(name.startswith("token_id:") for name in likeliest):
        return None
    # A server may list the token that it drew beside the likeliest.
    least = sorted(likeliest.values(), reverse=True)[LIKELIEST - 1]
    return max(0.0, token.logprob - least)


def compared(going_on: Continuation, differences: Sequence[float], mode: SalvageMode) -> Continuation:
    """`going_on`, whose seam says what was found. Raises `Unlike` where that is too much to be exact, unless nearly so
    is enough."""
    if not differences:
        return going_on
    mean = fmean(differences)
    if mean > BOUND_NATS and mode != "near":
        raise Unlike(f"of its last {len(differences)} tokens the server says log-probabilities {mean:.2f} nats off")
    seam = msgspec.structs.replace(
        going_on.seam, exact=mean <= BOUND_NATS, difference=round(mean, 6), compared=len(differences)
    )
    return replace(going_on, seam=seam)
