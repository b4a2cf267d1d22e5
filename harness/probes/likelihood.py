"""Whether a copy of a model is still equivalent, judged by the log-probabilities that both assign to the base's
replies.

A token's difference is the base's log-probability minus the copy's, in nats; it is positive where the base's token is
less likely under the copy. The mean over tokens is a ratio of two sums over questions, whose clusters are independent
(`stats.between`). A difference is not a loss: the verdicts are *same*, *differs* and *cannot tell*, never *worse*.

    differs      the mean difference, or the divergence, is farther from 0 than its floor: two-sided t test at `LEVEL`
    same         else, if the 95% intervals of both lie within ±margin
    cannot tell  else

If the base drew the replies at temperature 1, the expected difference at a position is the Kullback-Leibler divergence
there, so the mean divergence, which the lists of likeliest tokens bound from below, measures the same with less noise.
A floor is the outer end of the interval of the noise (two passes of the base), but at least `MIN_DIFFERENCE` or
`MIN_DIVERGENCE`. All functions are pure.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np

from harness.core.number_text import count_noun
from harness.core.records import Key, SampleRecord
from harness.scoring.stats import Array, between, t_factor, t_two_sided

LEVEL = 0.01
"""Probability of a false *differs*."""

MIN_DIFFERENCE = 0.001
"""Smallest difference that counts, in nats per token. SmolLM2-135M differs by less than 0.0005 between float32 and
bfloat16, or with 8-bit weights in groups of 32, and by 0.012 with 6-bit weights.
"""

MIN_DIVERGENCE = 0.002
"""Smallest divergence that counts, in nats per token. SmolLM2-135M diverges by 0.0007 between float32 and bfloat16 in
vLLM, and by 0.008 with 6-bit weights.
"""

BANDS = (256, 1024, 4096, 16384)
"""Last positions of the bands of a reply's tokens, counted from 1; the last band has no end."""

OPENING = 16
"""Number of tokens at the start of a reply, where a different chat template has the most effect."""

OPENING_FACTOR = 4.0
"""If the difference in the opening is this many times that in the rest of the first band, the template is blamed."""

MOVED = 10
"""Number of tokens with the largest differences that are listed."""

Verdict = Literal["same", "differs", "cannot tell"]


class LikelihoodDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A mean log-likelihood difference, base minus copy."""

    of: str
    """Scope of the difference, such as "all" tokens, a range of positions, or a benchmark."""
    tokens: int
    """Number of tokens."""
    questions: int
    """Number of question clusters."""
    mean: float
    """Mean difference, in nats per token."""
    low: float | None = None
    """Lower endpoint of the 95% interval; None if all tokens come from one question cluster."""
    high: float | None = None
    """Upper endpoint of the 95% interval; None if all tokens come from one question cluster."""
    error: float | None = None
    """Standard error of the mean; None if all tokens come from one question cluster."""
    freedom: int = 0
    """Degrees of freedom of the standard error."""
    size: float = 0.0
    """Mean of the absolute differences, in nats per token."""
    kl: float | None = None
    """Lower bound on the copy's mean Kullback-Leibler divergence from the base; None if unknown."""

    @property
    def reach(self) -> float:
        """How far from 0 the difference may be, according to its interval."""
        if not self.tokens:
            return 0.0
        return math.inf if self.low is None or self.high is None else max(abs(self.low), abs(self.high))

    def exceeds(self, floor: float) -> bool:
        """Whether the difference is significantly farther from 0 than `floor`, at the level `LEVEL`."""
        beyond = abs(self.mean) - floor
        if self.error is None or beyond <= 0:
            return False
        return self.error == 0 or t_two_sided(beyond / self.error, self.freedom) <= LEVEL

    def __str__(self) -> str:
        interval = "" if self.low is None else f" ({self.low:+z.4f} to {self.high:+z.4f})"
        return f"{self.mean:+z.4f}{interval}"


NONE = LikelihoodDifference(of="", tokens=0, questions=0, mean=0.0)
"""A difference over no tokens."""


class MovedToken(SampleRecord, frozen=True, kw_only=True):
    """A token with a large log-likelihood difference."""

    position: int
    """One-based position of the token in its reply."""
    base: float
    """Log-probability assigned by the base, in nats."""
    copy: float
    """Log-probability assigned by the copy, in nats."""
    token: str = ""
    """The token's text."""
    before: str = ""
    """Text that precedes the token."""


class Likelihood(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of the log-probabilities that a base model and its copy assign to the same replies."""

    base: str
    """Server that runs the base model."""
    difference: LikelihoodDifference
    """Mean log-likelihood difference over all tokens."""
    divergence: LikelihoodDifference
    """Mean Kullback-Leibler divergence over all tokens; if the divergence is unknown, its `tokens` is 0."""
    noise: LikelihoodDifference
    """Mean log-likelihood difference between two passes of the base model over the same replies."""
    opening: LikelihoodDifference
    """Mean log-likelihood difference over the first tokens of each reply."""
    positions: list[LikelihoodDifference]
    """Differences by position in the reply."""
    benchmarks: list[LikelihoodDifference]
    """Differences by benchmark."""
    moved: list[MovedToken]
    """Tokens with the largest differences."""
    verdict: Verdict
    """Whether the copy is equivalent to its base model."""
    margin: float
    """Maximum difference that still counts as equivalent, in nats per token."""
    more_tokens: int = 0
    """Number of additional tokens needed for a clear verdict; 0 if the verdict is already clear."""
    template: str = ""
    """Evidence that the chat templates differ; empty if there is none."""

    @property
    def reach(self) -> float:
        """How far the copy may be from its base, in nats per token."""
        return max(self.difference.reach, self.divergence.reach)

    @property
    def sentence(self) -> str:
        """The verdict in words, with its numbers."""
        difference, apart = self.difference, self.divergence
        words = f"inconclusive: about {self.more_tokens:,} more tokens are needed"
        if self.verdict == "same":
            words = f"the same to within {self.reach:.4f} nats per token"
        elif self.verdict == "differs":
            words = f"differs by {max(abs(difference.mean), apart.mean):.4f} nats per token"
        template = f"; compare the chat templates: {self.template}" if self.template else ""
        read = f"in {difference.tokens:,} tokens of {count_noun(difference.questions, 'question')}"
        kl = f"divergence {apart}, " if apart.tokens else ""
        return f"{words}: difference {difference}, {kl}base against itself {self.noise}, {read}{template}"


@dataclass(frozen=True, eq=False)
class ComparedReply:
    """One reply, with the log-probabilities that base and copy assign to it.

    cluster: label of its question's cluster. base, again, copy: (n,) log-probabilities of its tokens, in nats, from the
    base, from the base's second reading, and from the copy. divergences, noise: (n,) divergences of the copy, and of
    the second reading, from the base, in nats; NaN where the likeliest tokens are not listed.
    """

    benchmark: str
    key: Key
    cluster: str
    base: Array
    again: Array
    copy: Array
    divergences: Array
    noise: Array

    def moved_token(self, i: int) -> MovedToken:
        """The token at index i, without its text."""
        return MovedToken(
            benchmark=self.benchmark,
            question_id=self.key.question_id,
            sample_index=self.key.sample_index,
            position=i + 1,
            base=float(self.base[i]),
            copy=float(self.copy[i]),
        )


def mean_difference(of: str, parts: Sequence[tuple[str, Array, Array]]) -> LikelihoodDifference:
    """The mean difference of log-probabilities and the mean divergence per token, over these replies.

    parts: (label of the question's cluster, (n,) differences, (n,) divergences) for each reply.
    """
    sums: dict[str, Array] = {}
    for cluster, differences, _ in parts:
        if differences.size:
            sums[cluster] = sums.get(cluster, np.zeros(3)) + np.array(
                [differences.sum(), differences.size, np.abs(differences).sum()]
            )
    if not sums:
        return msgspec.structs.replace(NONE, of=of)
    totals, tokens, sizes = np.array([*sums.values()]).T
    divergences = np.concatenate([part[2] for part in parts])
    known = divergences[~np.isnan(divergences)]
    difference = LikelihoodDifference(
        of=of,
        tokens=int(tokens.sum()),
        questions=len(sums),
        mean=float(totals.sum() / tokens.sum()),
        size=float(sizes.sum() / tokens.sum()),
        kl=float(known.mean()) if known.size else None,
    )
    if len(sums) == 1:
        return difference
    spread = between(totals / tokens, weights=tokens)
    error = math.sqrt(float(spread.variance))
    half = t_factor(spread.freedom) * error
    return msgspec.structs.replace(
        difference, low=difference.mean - half, high=difference.mean + half, error=error, freedom=spread.freedom
    )


def verdict_of(
    difference: LikelihoodDifference,
    noise: LikelihoodDifference,
    margin: float,
    apart: LikelihoodDifference = NONE,
    apart_noise: LikelihoodDifference = NONE,
) -> tuple[Verdict, int]:
    """The verdict and, if it is *cannot tell*, about how many more tokens would settle it.

    apart, apart_noise: mean divergences of the copy and of the base's second reading.
    """
    floor = max(MIN_DIFFERENCE, noise.reach)
    if difference.exceeds(floor) or apart.exceeds(max(MIN_DIVERGENCE, apart_noise.reach)):
        return "differs", 0
    if max(difference.reach, apart.reach) <= margin:
        return "same", 0
    # The error falls with the square root of the number of tokens; the nearer of the two verdicts is reached first.
    room = max(margin - abs(difference.mean), abs(difference.mean) - floor, margin / 10)
    factor = ((difference.reach - abs(difference.mean)) / room) ** 2 if difference.error is not None else 2.0
    return "cannot tell", max(1, math.ceil(difference.tokens * (factor - 1)))


def compare(base: str, replies: Sequence[ComparedReply], margin: float) -> Likelihood:
    """Compare how likely the replies are under the copy and under the base. base: the base's server. replies: at least
    one.
    """
    differences = [reply.base - reply.copy for reply in replies]
    parts = [
        (reply.cluster, difference, reply.divergences) for reply, difference in zip(replies, differences, strict=True)
    ]

    def band(of: str, first: int, last: int | None) -> LikelihoodDifference:
        return mean_difference(
            of, [(cluster, difference[first:last], apart[first:last]) for cluster, difference, apart in parts]
        )

    ends = [0, *BANDS, None]
    names = [*(f"{first + 1:,}–{last:,}" for first, last in pairwise((0, *BANDS))), f"from {BANDS[-1] + 1:,}"]
    bands = [band(of, first or 0, last) for of, (first, last) in zip(names, pairwise(ends), strict=True)]
    of_benchmark: dict[str, list[tuple[str, Array, Array]]] = {}
    for reply, part in zip(replies, parts, strict=True):
        of_benchmark.setdefault(reply.benchmark, []).append(part)

    def mean(of: str, values: Iterable[Array]) -> LikelihoodDifference:
        """The mean of other values of each reply's tokens, which are NaN where unknown."""
        pairs = zip(replies, values, strict=True)
        return mean_difference(of, [(reply.cluster, each[~np.isnan(each)], np.empty(0)) for reply, each in pairs])

    difference = mean_difference("all", parts)
    noise = mean("base against itself", [reply.base - reply.again for reply in replies])
    apart = mean("divergence", [reply.divergences for reply in replies])
    apart_noise = mean("divergence", [reply.noise for reply in replies])
    verdict, more = verdict_of(difference, noise, margin, apart, apart_noise)
    opening, after = band(f"1–{OPENING}", 0, OPENING), band("", OPENING, BANDS[0])
    template = ""
    if verdict == "differs" and abs(opening.mean) > OPENING_FACTOR * abs(after.mean) + noise.reach:
        template = (
            f"the difference is {opening.mean:+z.4f} over the first {OPENING} tokens and {after.mean:+z.4f} after that"
        )
    sizes = ((abs(float(value)), n, i) for n, each in enumerate(differences) for i, value in enumerate(each) if value)
    largest = heapq.nlargest(MOVED, sizes)
    return Likelihood(
        base=base,
        difference=difference,
        divergence=apart,
        noise=noise,
        opening=opening,
        positions=[each for each in bands if each.tokens],
        benchmarks=[mean_difference(name, each) for name, each in of_benchmark.items()],
        moved=[replies[n].moved_token(i) for _, n, i in largest],
        verdict=verdict,
        margin=margin,
        more_tokens=more,
        template=template,
    )


# ---- two distributions for which only lists of the likeliest tokens are known


COVERED = 0.5
"""Two lists have little in common if the other list covers less than this fraction of the probability that the
reference lists.
"""

MIN_TOKEN, MIN_REST = 1e-9, 1e-6
"""Smallest probabilities of a token and of the rest: probabilities rounded to 0 would make ratios infinite."""


def covered(server: Mapping[str, float], reference: Mapping[str, float]) -> float:
    """The fraction of the reference's listed probability that falls on tokens that the server also lists."""
    return _mass(reference, server.keys() & reference.keys()) / max(_mass(reference, reference), MIN_TOKEN)


def divergence(server: Mapping[str, float], reference: Mapping[str, float]) -> float:
    """A lower bound on the Kullback-Leibler divergence of the server from the reference, in nats.

    server, reference: token → log-probability. The events are the tokens in both lists, and all other tokens together:
    the divergence of coarsened distributions is never larger than the true one. If the lists have little in common
    (`COVERED`), the rest is nearly everything and hides any difference. In that case, the bound comes from the tokens
    that are in only one list: a token that a list omits is at most as probable as the least probable token of that
    list.
    """
    events = [name for name in server if name in reference]
    apart = relative_entropy(coarse_probabilities(events, server), coarse_probabilities(events, reference))
    if covered(server, reference) >= COVERED:
        return apart
    only_server, only_reference = server.keys() - reference.keys(), reference.keys() - server.keys()
    p, q_most = _mass(server, only_server), _most_unlisted(reference, len(only_server))
    q, p_most = _mass(reference, only_reference), _most_unlisted(server, len(only_reference))
    # Each bound has two events: the token drawn is in one list only, or not.
    return max(apart, _binary(p, q_most) if p > q_most else 0.0, _binary(p_most, q) if q > p_most else 0.0)


def relative_entropy(p: Sequence[float], q: Sequence[float]) -> float:
    """Kullback-Leibler divergence of p from q, D(p‖q): two distributions over the same events, in nats."""
    return max(0.0, sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))


def coarse_probabilities(events: Sequence[str], logprobs: Mapping[str, float]) -> list[float]:
    """Probabilities of the events and of the rest, all above 0."""
    probabilities = [max(math.exp(logprobs[name]), MIN_TOKEN) for name in events]
    # Rounded probabilities may sum to slightly more than 1.
    probabilities.append(max(1 - sum(probabilities), MIN_REST))
    total = sum(probabilities)
    return [probability / total for probability in probabilities]


def _binary(p: float, q: float) -> float:
    """The divergence of a binary event with probability p from one with probability q."""
    p, q = (min(max(probability, MIN_REST), 1 - MIN_REST) for probability in (p, q))
    return relative_entropy((p, 1 - p), (q, 1 - q))


def _mass(logprobs: Mapping[str, float], names: Mapping[str, float] | set[str]) -> float:
    """The total probability of these tokens."""
    return min(1.0, sum(math.exp(logprobs[name]) for name in names))


def _most_unlisted(logprobs: Mapping[str, float], n: int) -> float:
    """The maximum total probability of `n` tokens that this list omits."""
    # A server may append the token that it drew to its list, so the last but one is the one that bounds the omitted
    # tokens.
    least = sorted(logprobs.values())[:2]
    each = math.exp(least[1]) if len(least) > 1 else 1.0
    return min(n * each, 1 - _mass(logprobs, logprobs))
