"""Checks that one model answers: the distribution of the next token after one prompt, asked for many times.

Replicas of one model state the same log-probabilities, apart from what batches and kernels do to them. Lists that
differ more come from other weights, another precision or another template behind the same address. So two different
distributions after one prompt are reported as two models. Later checks that compare requests are then untested: they
would mistake the second model for a fault, such as a broken top_k.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from harness.verbs.probe.asking import Refused
from harness.verbs.probe.findings import Check, Seen, sound, spoils, untested
from harness.verbs.probe.overlap import divergence
from harness.verbs.probe.sampling import CLOSED
from harness.verbs.probe.subject import Lost, Subject, listed

ASKED = 40
"""Number of requests with the same prompt. A replica that answers one request in eight is missed once in 200 probes."""

APART = 0.02
"""Smallest divergence of two lists, in nats, that shows two models. Batches, rounding and 8-bit copies of the weights
stay below it; 4-bit copies exceed it.
"""


def models(tops: Sequence[Mapping[str, float]]) -> list[int]:
    """Group lists of likeliest tokens by the model that made them; return the sizes of the groups, the largest first.

    Two lists whose divergence is below `APART` are of one model, and so are lists linked by a chain of such pairs.
    """
    # Union-find: the links lead from each list to the root of its group, a list that links to itself.
    links = list(range(len(tops)))

    def root(i: int) -> int:
        """The root of the group of list `i`: the list to which the links from it lead in the end."""
        while links[i] != i:
            i = links[i]
        return i

    for i, a in enumerate(tops):
        for j in range(i):
            # Computed in both directions: a divergence overlooks tokens to which its first list gives little
            # probability.
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
    # `listed` drops tokens at the server's floor (a lowest value for all unlikely tokens), so a list may be empty.
    tops = [top for top in tops if top]
    refused = [answer.sentence for answer in answers if isinstance(answer, Refused)]
    subject.lost = Lost(n=ASKED - len(tops), of=ASKED, why=refused[0] if refused else "no log-probabilities")
    if not tops:
        return untested(sent, "no log-probabilities came")
    sizes = models(tops)
    if len(sizes) == 1:
        return sound(sent, f"one distribution in all {len(tops)} replies")
    subject.mixed = f"several models behind this address: {' and '.join(map(str, sizes))} of {len(tops)} replies"
    return spoils(sent, f"{subject.mixed} state distributions that no batch makes of one model")


CHECKS = (
    Check(
        name="one model", group="sampling", look=_one_model, quick=False, tokens=1_800, draws=ASKED,
        why="Behind one address there may be several replicas; a score over two models is no model's score.",
        mend="Ask each replica by an address of its own, and probe each; a provider's route can often be pinned.",
    ),
)  # fmt: skip
