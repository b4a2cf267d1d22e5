"""Checks that one model answers: the next token at one place, asked over many connections.

Replicas of one model state the same log-probabilities up to what batches and kernels do to them. Lists that lie further
apart come from other weights, another precision or another template behind the same address. So two distributions of
one request are reported as two models; later checks leave out what they would mistake for a broken top_k.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from harness.verbs.probe.asking import Refused
from harness.verbs.probe.findings import Check, Seen, sound, spoils, untested
from harness.verbs.probe.reference import divergence
from harness.verbs.probe.sampling import CLOSED
from harness.verbs.probe.subject import Subject, listed

ASKED = 40
"""Number of requests with the same prompt. A replica that gets one request of eight is missed once in 200 probes."""

APART = 0.02
"""Smallest divergence of two lists, in nats, that makes two models. Batches, rounding and 8-bit copies of the weights
stay below it, 4-bit copies exceed it."""


def models(tops: Sequence[Mapping[str, float]]) -> list[int]:
    """Group lists of likeliest tokens that one model can have made; return the sizes of the groups, the largest first.

    Two lists less than `APART` from one another are of one model, and so are lists linked by a chain of such pairs.
    """
    # Union-find: links lead from each list to its model's root, which links to itself.
    links = list(range(len(tops)))

    def root(i: int) -> int:
        """The list to which the links from list `i` lead in the end; it stands for its group."""
        while links[i] != i:
            i = links[i]
        return i

    for i, a in enumerate(tops):
        for j in range(i):
            # In both directions: a divergence overlooks tokens to which its first list gives little probability.
            if root(i) != root(j) and max(divergence(a, tops[j]), divergence(tops[j], a)) < APART:
                links[root(i)] = root(j)
    return sorted(Counter(root(i) for i in range(len(tops))).values(), reverse=True)


def _one_model(subject: Subject) -> Seen:
    """Check that one model answers, not several in turn: the same prompt must always give the same next-token
    distribution.
    """
    sent = f"one token after the same prompt, {ASKED} times"
    opened = subject.open
    if opened is None:
        return untested(sent, CLOSED)
    subject.seed += 1
    seeds = random.Random(subject.seed).sample(range(2**31), ASKED)  # noqa: S311 - no secret
    bodies = [opened.inquiry(seed=seed).body(subject.server.asker) for seed in seeds]
    answers = subject.server.many(bodies, opened.path)
    tops = [
        listed(answer.first.tokens[0].top)
        for answer in answers
        if not isinstance(answer, Refused) and answer.first.tokens
    ]
    # `listed` drops values at the floor that servers put in place of missing ones; such a list may be empty then.
    tops = [top for top in tops if top]
    if len(tops) < ASKED // 2:
        return untested(sent, f"{len(tops)} of {ASKED} replies state log-probabilities")
    sizes = models(tops)
    if len(sizes) == 1:
        return sound(sent, f"one distribution in all {len(tops)} replies")
    subject.mixed = f"several models behind this address: {' and '.join(map(str, sizes))} of {len(tops)} replies"
    return spoils(sent, f"{subject.mixed} state distributions that no batch makes of one model")


CHECKS = (
    Check(
        name="one model", group="sampling", look=_one_model, quick=False, tokens=1_800, draws=True,
        why="Behind one address there may be several replicas; a score over two models is no model's score.",
        mend="Ask each replica by an address of its own, and probe each; a provider's route can often be pinned.",
    ),
)  # fmt: skip
