"""Whether a candidate beats a baseline, tested after every round: a confidence sequence, valid however often one looks.

In a round both answer each of the Q questions once. d = 1 where the candidate alone is right, −1 where the baseline
alone is, 0 where both or neither are. With a bet 0 < λ ≤ ½ and a supposed difference m,

    W(m) = Π (1 + λ (d − m))    over all questions and rounds

is a supermartingale at the ends of rounds if the true difference δ, the mean over questions of their own δ_q, is at
most m: the expectation of a round's factor is Π_q (1 + λ (δ_q − m)) ≤ (1 + λ (δ − m))^Q ≤ 1, by independence of the
questions given δ_q and by the inequality of arithmetic and geometric means. So questions may differ in difficulty; the
only assumption is that the samples of one question are drawn alike. By Ville's inequality (1939) the chance that W ever
exceeds 1/a is at most a. The values m at which W has not exceeded 1/a form the confidence sequence (Waudby-Smith and
Ramdas 2024, J. R. Stat. Soc. B 86:1). The wealth is averaged over a grid of λ, which keeps the guarantee and makes some
bet fit any difference.

The two replies of a round to one question may depend on each other: one seed for both does no harm. Rounds with missing
samples are left out. Not covered: other questions of this kind, and a model that changes during the race. Pure.
"""

from __future__ import annotations

import functools
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.scoring.intervals import Interval

BETS = np.geomspace(0.01, 0.5, 16)
"""The grid of bets λ. A bet is best for a difference of about λ times the variance of d."""

LEVEL = 0.05
"""Largest chance that any verdict of a race is false."""

_STEPS = 40
"""Halvings of [−1, 1] in the search for an end of the interval: down to 2e-12."""

RaceVerdict = Literal["better", "worse", "equal within the margin", "undecided"]


class Totals(NamedTuple):
    """Answers in complete rounds. won: the candidate alone is right; lost: the baseline alone; tied: both or
    neither."""

    won: int
    tied: int
    lost: int

    @property
    def difference(self) -> float:
        """Mean of d, a fraction; 0 before the first round."""
        n = self.won + self.tied + self.lost
        return (self.won - self.lost) / n if n else 0.0


def log_wealth(totals: Totals, m: float) -> float:
    """Logarithm of W(m) averaged over the bets: the evidence that the difference is above m."""
    each = (
        totals.won * np.log1p(BETS * (1 - m))
        + totals.tied * np.log1p(-BETS * m)
        + totals.lost * np.log1p(-BETS * (1 + m))
    )
    most = float(each.max())
    return most + float(np.log(np.exp(each - most).mean()))


def lower_end(totals: Totals, alpha: float) -> float:
    """The largest m that the wealth rules out at level alpha, so that the difference is above m; −1 where there is
    none."""
    bar = -np.log(alpha)
    low, high = -1.0, 1.0
    if log_wealth(totals, low) < bar:
        return -1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if log_wealth(totals, middle) >= bar else (low, middle)
    return low


@functools.lru_cache(maxsize=4096)  # each look computes the earlier rounds again
def confidence(totals: Totals, alpha: float) -> Interval:
    """The interval of the difference with confidence 1 − alpha, at this and all other rounds together."""
    mirrored = Totals(totals.lost, totals.tied, totals.won)
    return Interval(lower_end(totals, alpha / 2), -lower_end(mirrored, alpha / 2))


def totals_of(candidate: NDArray[np.bool_], baseline: NDArray[np.bool_]) -> list[Totals]:
    """Totals after each round. candidate, baseline: (rounds, Q), whether each sample is right."""
    won = (candidate & ~baseline).sum(axis=1).cumsum()
    lost = (baseline & ~candidate).sum(axis=1).cumsum()
    n = candidate.shape[1]
    return [
        Totals(int(w), n * (i + 1) - int(w) - int(x), int(x)) for i, (w, x) in enumerate(zip(won, lost, strict=True))
    ]


class RaceState(NamedTuple):
    """A race after some complete rounds. interval: on each side the narrowest end of all rounds so far; fractions."""

    rounds: int
    difference: float
    interval: Interval
    verdict: RaceVerdict


def judge(rounds: list[Totals], margin: float, n_comparisons: int = 1) -> RaceState:
    """The verdict after these rounds.

    margin: the two count as equal if they differ by less, a fraction; 0 = never. n_comparisons: candidates of the race,
    each of which gets an equal share of `LEVEL`. "better" and "worse" go before "equal within the margin" where both
    hold.
    """
    low, high = -1.0, 1.0
    for totals in rounds:
        interval = confidence(totals, LEVEL / n_comparisons)
        low, high = max(low, interval.low), min(high, interval.high)
    verdict: RaceVerdict = "undecided"
    if low > high:  # the ends contradict each other, as one race in twenty may
        low, high = high, low
    elif low > 0:
        verdict = "better"
    elif high < 0:
        verdict = "worse"
    elif low > -margin and high < margin:
        verdict = "equal within the margin"
    difference = rounds[-1].difference if rounds else 0.0
    return RaceState(len(rounds), difference, Interval(low, high), verdict)
