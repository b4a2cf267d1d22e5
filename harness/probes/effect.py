"""Tells whether a change of the prompt reaches the model, by its effect on the next token's log-probabilities.

Any word of a prompt moves the logits of the next token a little. A change that moves them by no more than a repeat of
the same request does never reached the model. The measure is an F ratio: the squared distance between the mean
log-probabilities with the change (ȳ, of n requests) and without it (x̄, of m requests), divided by the expectation of
this distance if only noise parts them (batches and kernels move logits from request to request).

    ratio = mean over tokens of (x̄ − ȳ)² / (s² (1/m + 1/n)),   s²: variance of repeats, pooled over tokens

All functions are pure except `ask`, which sends requests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.client.wires.chat import CHAT
from harness.client.wires.wire import Wire
from harness.probes.inquiries import ProbedServer, Refused, first_top
from harness.probes.subject import TOP, listed

MIN_EFFECT = 8.0
"""Smallest F ratio of a change that reached the model. If twenty tokens have independent noise, noise alone makes a
ratio above 3 in one of 10,000 cases. The limit is well above 3 because the noise of a batch moves all tokens together.
"""

MAX_CHANCE = 3.0
"""Largest F ratio of a change that shows no effect; between this and `MIN_EFFECT`, noise and effect look the same."""

MIN_POWER = 20.0
"""A missing effect counts only if the same kind of change elsewhere moves the log-probabilities by this many times the
distance that noise alone makes. The factor is far above 1, because models react several times less to one place of a
prompt than to another.
"""

MIN_REPEATS = 2
"""Smallest number of equal requests from which the noise of repeats is estimated."""

EQUAL_NATS = 1e-4
"""Log-probabilities that differ by less are equal; servers round what they state."""

MAX_NOISE_NATS = 0.1
"""Largest spread of the log-probabilities of repeats at which a missing effect says that a change never reached the
model. In a larger spread, a real effect may drown; batches and caches move trained models by only some 0.02.
"""

MIN_COMMON = 3
"""Smallest number of tokens that all lists must share; lists that share fewer differ by more than noise."""

Top = Mapping[str, float]
"""Token → log-probability, of the likeliest next tokens after a prompt."""


@dataclass(frozen=True)
class Shift:
    """By how much a change of the prompt moved the next token's log-probabilities, in nats.

    distance: root mean square between the mean log-probabilities; infinite if too few tokens are shared. chance: the
    distance that noise alone makes. noise: standard deviation of repeats.
    """

    distance: float
    chance: float
    noise: float

    @property
    def ratio(self) -> float:
        """The F ratio of the change; see `effect`."""
        if self.distance == 0:
            return 0.0
        return math.inf if self.chance < EQUAL_NATS else (self.distance / self.chance) ** 2

    def hides_none(self, elsewhere: Sequence[Shift]) -> bool:
        """Whether this change surely never reached the model, so that no effect hides in the noise.

        It is sure if there is no noise and no log-probability moves at all; or if this change has no visible effect,
        and the same kind of change elsewhere has an effect so large that noise could not hide a similar one here.
        elsewhere: the same kind of change at other places of the prompt; places without a visible effect are ignored.
        """
        if self.distance == 0 and self.noise < EQUAL_NATS:
            return True
        visible = [shift.distance for shift in elsewhere if shift.ratio >= MIN_EFFECT]
        silent = self.ratio < MAX_CHANCE and self.noise <= MAX_NOISE_NATS
        return silent and bool(visible) and max(visible) >= MIN_POWER * max(self.chance, EQUAL_NATS)


def shift_of(before: Sequence[Top], after: Sequence[Top]) -> Shift:
    """Measure by how much a change of the prompt moved the next token's log-probabilities.

    before: for each request without the change, token → log-probability; at least `MIN_REPEATS` requests. after: the
    same for the requests with the change.
    """
    assert len(before) >= MIN_REPEATS
    assert after
    common = sorted(set.intersection(*(set(top) for top in (*before, *after))))
    # Noise swaps only the last few of twenty tokens, so lists that share so few tokens come from different prompts.
    if len(common) < MIN_COMMON:
        return Shift(distance=math.inf, chance=0.0, noise=0.0)
    x = np.array([[top[token] for token in common] for top in before])
    y = np.array([[top[token] for token in common] for top in after])
    distance = x.mean(axis=0) - y.mean(axis=0)
    # One variance for all tokens: with two or three repeats, a variance of each would be mostly chance.
    freedom = len(x) - 1 + len(y) - 1
    spread = float(((x - x.mean(axis=0)) ** 2).sum() + ((y - y.mean(axis=0)) ** 2).sum()) / (freedom * len(common))
    equal = float(np.abs(distance).max()) < EQUAL_NATS
    return Shift(
        distance=0.0 if equal else math.sqrt(float((distance**2).mean())),
        chance=math.sqrt(spread * (1 / len(x) + 1 / len(y))),
        noise=math.sqrt(spread),
    )


def effect(before: Sequence[Top], after: Sequence[Top]) -> float:
    """The F ratio of a change of the prompt: about 1 if the change never reached the model, large if it did.

    Infinite if the means differ and repeats do not, or the lists share fewer than `MIN_COMMON` tokens; 0 if the means
    are equal. Parameters: see `shift_of`.
    """
    return shift_of(before, after).ratio


def ask(server: ProbedServer, bodies: Sequence[Mapping[str, Any]], wire: Wire = CHAT) -> list[Top]:
    """The next token's log-probabilities after each of these prompts.

    Raises `Refused` if a request fails or brings no log-probabilities.
    """
    fields = {"max_tokens": 1, "temperature": 0, **wire.likeliest(TOP)}
    replies = server.every([{**body, **fields} for body in bodies], wire)
    tops: list[Top] = [listed(first_top(reply)) for reply in replies]
    if not all(tops):
        raise Refused(0, "no log-probabilities came")
    return tops
