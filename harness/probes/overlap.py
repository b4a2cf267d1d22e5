"""How far two distributions are apart, of which only lists of the likeliest tokens are known.

The lists are coarsened to the tokens that both hold plus one event for the rest, and a Kullback-Leibler divergence of
coarsened distributions is never larger than the true one. Where the lists share little, the rest is nearly everything
and hides any difference. There the bound comes from the tokens that one list alone holds: a token that a list leaves
out is at most as probable as the least probable token of this list. This is a lower bound, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

COVERED = 0.5
"""Two lists share little if the other list holds less than this fraction of the probability that the reference lists.
"""

MIN_TOKEN, MIN_REST = 1e-9, 1e-6
"""Smallest probabilities of a token and of the rest: those that are rounded to 0 would make ratios infinite."""


def covered(server: Mapping[str, float], reference: Mapping[str, float]) -> float:
    """The fraction of the reference's listed probability that falls on tokens which the server lists, too."""
    return _mass(reference, server.keys() & reference.keys()) / max(_mass(reference, reference), MIN_TOKEN)


def divergence(server: Mapping[str, float], reference: Mapping[str, float]) -> float:
    """The Kullback-Leibler divergence of the server from the reference, in nats.

    server, reference: token → log-probability. The events are the tokens that both list, and all other tokens together;
    where the lists share little (`COVERED`), the result is the best lower bound that they allow.
    """
    events = [name for name in server if name in reference]
    apart = between(coarse(events, server), coarse(events, reference))
    if covered(server, reference) >= COVERED:
        return apart
    only_server, only_reference = server.keys() - reference.keys(), reference.keys() - server.keys()
    p, q_most = _mass(server, only_server), _most_unlisted(reference, len(only_server))
    q, p_most = _mass(reference, only_reference), _most_unlisted(server, len(only_reference))
    # Each bound has two events: a token that one list alone holds came, or not.
    return max(apart, _binary(p, q_most) if p > q_most else 0.0, _binary(p_most, q) if q > p_most else 0.0)


def between(p: Sequence[float], q: Sequence[float]) -> float:
    """Kullback-Leibler divergence of p from q, D(p‖q): two distributions over the same events, in nats."""
    return max(0.0, sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))


def coarse(events: Sequence[str], logprobs: Mapping[str, float]) -> list[float]:
    """Probabilities of the events and of the rest; all above 0."""
    probabilities = [max(math.exp(logprobs[name]), MIN_TOKEN) for name in events]
    # Rounded probabilities may sum to slightly more than 1.
    probabilities.append(max(1 - sum(probabilities), MIN_REST))
    total = sum(probabilities)
    return [probability / total for probability in probabilities]


def _binary(p: float, q: float) -> float:
    """The divergence of an event of probability p, and its contrary, from one of probability q."""
    p, q = (min(max(probability, MIN_REST), 1 - MIN_REST) for probability in (p, q))
    return between((p, 1 - p), (q, 1 - q))


def _mass(logprobs: Mapping[str, float], names: Mapping[str, float] | set[str]) -> float:
    """The probability of these tokens together."""
    return min(1.0, sum(math.exp(logprobs[name]) for name in names))


def _most_unlisted(logprobs: Mapping[str, float], n: int) -> float:
    """The most probability that `n` tokens can have that this list leaves out."""
    # A server may add the token that it drew as the last of its list, so the last but one is what bounds the others.
    least = sorted(logprobs.values())[:2]
    each = math.exp(least[1]) if len(least) > 1 else 1.0
    return min(n * each, 1 - _mass(logprobs, logprobs))
