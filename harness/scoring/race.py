"""Tests again and again, while a candidate and a baseline are sampled, whether the candidate is better.

Two tests give a false verdict in at most 5 % of races:

| | `judge_planned` | `judge` |
| --- | --- | --- |
| looks | fixed in advance: samples and step | at any time, any number; the samples may be raised later |
| test | score test, 4.5 % spent over the looks | confidence sequence |
| promise | asymptotic; by simulation 4.0 to 4.6 % | exact |
| finds a difference of 3 points (500 questions × 8 samples) | 82 % | 43 % |

**Planned looks.** The score test of `differences` at look k, at the fraction t_k of all rounds, rejects beyond z_k
errors. Its statistic at the looks is a Brownian motion at the times t_k, and z_k is chosen so that the chance of having
rejected by t_k is 4.5 % · t_k² if both are equally good (alpha spending: Lan and DeMets 1983, Biometrika 70:659; power
family: Kim and DeMets 1987, Biometrika 74:149). The interval, difference ± z_k errors, holds at all looks together.

**At any time.** In a round both models answer each of the Q questions once. d = 1 where the candidate alone is right,
−1 where the baseline alone is, 0 where both or neither are. With a bet 0 < λ ≤ ½ and a supposed difference m,

    W(m) = Π (1 + λ (d − m))    over all questions and rounds

is a supermartingale at the ends of rounds if the true difference δ, the mean over questions of their own δ_q, is at
most m: the expectation of a round's factor is Π_q (1 + λ (δ_q − m)) ≤ (1 + λ (δ − m))^Q ≤ 1, by independence of the
questions given δ_q and by the inequality of arithmetic and geometric means. So questions may differ in difficulty; the
only assumption is that the samples of one question are drawn alike. By Ville's inequality (1939) the chance that W ever
exceeds 1/a is at most a. The values m at which W has not exceeded 1/a form the confidence sequence (Waudby-Smith and
Ramdas 2024, J. R. Stat. Soc. B 86:1). The wealth is averaged over a grid of λ, which keeps the guarantee and makes some
bet fit any difference.

**A change during the race.** Both tests suppose that the samples of one question are drawn alike. A server that warms
up, or that is replaced, breaks this assumption: a candidate that is 10 points worse in an eighth of the rounds only was
called worse in 29 to 93 % of races. So a "better" or "worse" that is first reached after r rounds, with r at most half
of all, waits for r/2 further rounds (`confirm`). The verdict is withheld while the rounds after r speak against the
rounds up to r by more than `DRIFT_ERRORS` standard errors; a model that does not change does so in 5 % of races. (If
no round follows r, the second half of the rounds is compared with the first.) A change that comes too late, or lasts
too long, for these rounds to show it goes unnoticed.

The two replies of a round to one question may depend on each other: one seed for both models does no harm. Rounds with
missing samples are left out. Neither test says anything about other questions of this kind. No I/O.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.core.nouns import count_noun, in_points
from harness.scoring.differences import detection
from harness.scoring.intervals import Interval

BETS = np.geomspace(0.01, 0.5, 16)
"""The grid of bets λ. A bet is best for a difference of about λ times the variance of d."""

LEVEL = 0.05
"""Largest chance that any verdict of a race is false."""

_STEPS = 40
"""Number of halvings of [−1, 1] in the search for an end of the interval: down to 2e-12."""

PLANNED_LEVEL = 0.045
"""Level that planned looks spend, below the promised `LEVEL`: the normal approximation may exceed it by a tenth."""

MAX_LOOKS = 64
"""Largest number of planned looks; more would hardly decide earlier."""

SPENDING = 2.0
"""After a fraction t of all rounds, t to this power of the level is spent: little of it early, when little is known."""

CONFIRMING = 1.5
"""A verdict of the first half of a race is given after this multiple of the rounds that it took."""

DRIFT_ERRORS = 1.64
"""A verdict is withheld if later rounds speak against earlier ones by more than this many standard errors."""

_GRID, _REACH = 4001, 8.0
"""Points and half-width of the grid on which `boundaries` are computed; the path ends within ±8 but for 1e-15."""

RaceVerdict = Literal["better", "worse", "equal within the margin", "undecided"]


class Totals(NamedTuple):
    """Counts over complete rounds; in a round each run answers each question once.

    won: only the candidate is right; lost: only the baseline is; tied: both or neither.
    """

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
    # The largest term is taken out, since the wealth itself may overflow a float.
    most = float(each.max())
    return most + float(np.log(np.exp(each - most).mean()))


def lower_end(totals: Totals, alpha: float) -> float:
    """The lower end of the interval: the largest m such that the samples rule out a difference of m or less.

    alpha: the level of that test. −1 if the samples rule out no difference.
    """
    bar = -np.log(alpha)
    low, high = -1.0, 1.0
    if log_wealth(totals, low) < bar:
        return -1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if log_wealth(totals, middle) >= bar else (low, middle)
    return low


@functools.lru_cache(maxsize=4096)  # Cached, because each look computes the earlier rounds again.
def confidence(totals: Totals, alpha: float) -> Interval:
    """The interval of the difference with confidence 1 − alpha, at this and all other rounds together."""
    mirrored = Totals(totals.lost, totals.tied, totals.won)
    return Interval(lower_end(totals, alpha / 2), -lower_end(mirrored, alpha / 2))


def totals_of(candidate: NDArray[np.bool_], baseline: NDArray[np.bool_]) -> list[Totals]:
    """Return the totals after each round, over all rounds so far.

    candidate, baseline: (rounds, Q), whether each sample is right.
    """
    won = (candidate & ~baseline).sum(axis=1).cumsum()
    lost = (baseline & ~candidate).sum(axis=1).cumsum()
    n = candidate.shape[1]
    return [
        Totals(int(w), n * (i + 1) - int(w) - int(x), int(x)) for i, (w, x) in enumerate(zip(won, lost, strict=True))
    ]


def planned_looks(step: int, most: int) -> tuple[int, ...]:
    """The rounds after which a race of at most `most` rounds is tested; the last is `most`.

    The race is tested every `step` rounds, or every multiple of `step` that keeps the tests to `MAX_LOOKS`.
    """
    stride = step * math.ceil(most / step / MAX_LOOKS)
    return (*range(stride, most, stride), most)


@functools.lru_cache(maxsize=256)
def boundaries(looks: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    """Return for each look the number of standard errors beyond which a difference is called real (two-sided).

    looks: the rounds after which the race is tested, rising; the last is the whole race. alpha: the chance of a false
    call that all looks share. The density of the paths that no earlier look ended is integrated numerically (Armitage,
    McPherson and Rowe 1969, J. R. Stat. Soc. A 132:235), on a grid of `_GRID` points.
    """
    x = np.linspace(-_REACH, _REACH, _GRID)
    width = float(x[1] - x[0])
    alive = np.zeros(_GRID)
    alive[_GRID // 2] = 1 / width  # All paths begin at 0.
    errors: list[float] = []
    spent, before = 0.0, 0.0
    for look in looks:
        # The density of the paths at this look: since the last look each moved by a normal step.
        time = look / looks[-1]
        lags = width * np.arange(-(_GRID - 1), _GRID)
        step = np.exp(-(lags**2) / (2 * (time - before))) / math.sqrt(2 * math.pi * (time - before))
        alive = np.convolve(alive, step)[_GRID - 1 : 2 * _GRID - 1] * width
        # The end beyond which lies the share of the paths that this look may reject, interpolated between grid points.
        share = (alpha * time**SPENDING - spent) / 2  # Half of the level for each side.
        outside = np.cumsum(alive[::-1]) * width
        i = int(np.searchsorted(outside, share))
        inner = outside[i - 1] if i else 0.0
        end = float(x[-1 - i]) + width * (0.5 - (share - inner) / max(float(outside[i] - inner), 1e-300))
        alive = np.where(np.abs(x) <= end, alive, 0.0)
        errors.append(float(end) / math.sqrt(time))
        spent, before = alpha * time**SPENDING, time
    return tuple(errors)


class RaceState(NamedTuple):
    """The comparison of a candidate with the baseline after some complete rounds.

    difference: accuracy of the candidate minus that of the baseline, a fraction. interval: the intersection of the
    intervals of all looks so far. called: rounds after which the verdict was first reached; 0 if none was. withheld:
    why `verdict` is "undecided" although a verdict was reached; else empty.
    """

    rounds: int
    difference: float
    interval: Interval
    verdict: RaceVerdict
    called: int
    withheld: str = ""


def judge(rounds: list[Totals], margin: float, n_comparisons: int = 1) -> RaceState:
    """Compare a candidate with the baseline in a race that may be looked at after any round; return the state.

    rounds: the totals after each round. margin: candidate and baseline count as equal if they differ by less than this
    fraction; 0 = never. n_comparisons: candidates of the race, each of which gets an equal share of `LEVEL`. If both
    "better" (or "worse") and "equal within the margin" hold, the first is returned.
    """
    intervals = [confidence(totals, LEVEL / n_comparisons) for totals in rounds]
    looks = range(1, len(rounds) + 1)
    return _state(len(rounds), rounds[-1].difference if rounds else 0.0, looks, intervals, margin)


def judge_planned(
    candidate: NDArray[np.bool_],
    baseline: NDArray[np.bool_],
    looks: tuple[int, ...],
    margin: float,
    n_comparisons: int = 1,
) -> RaceState:
    """Compare a candidate with the baseline in a race that is tested only after planned rounds; return the state.

    candidate, baseline: (rounds, Q), whether each sample is right. looks: the rounds after which the race is tested.
    margin, n_comparisons: as in `judge`; the candidates share `PLANNED_LEVEL`.
    """
    intervals = []
    for look, z in zip(looks, boundaries(looks, PLANNED_LEVEL / n_comparisons), strict=True):
        if look > len(candidate):
            break
        ours, theirs = (right[:look].sum(axis=0).astype(float) for right in (candidate, baseline))
        counts = np.full(ours.shape, float(look))
        difference = float((ours - theirs).mean()) / look
        reach = z * math.sqrt(float(detection(ours, counts, theirs, counts).variance))
        intervals.append(Interval(max(-1.0, difference - reach), min(1.0, difference + reach)))
    difference = float(candidate.mean() - baseline.mean()) if len(candidate) else 0.0
    return _state(len(candidate), difference, looks, intervals, margin)


def _state(
    rounds: int, difference: float, looks: Sequence[int], intervals: Sequence[Interval], margin: float
) -> RaceState:
    """Return the state of a comparison; its verdict follows from the range that the intervals of all looks share.

    rounds: complete rounds. difference: observed, a fraction. looks, intervals: the rounds and interval of each look.
    margin: candidate and baseline count as equal if they differ by less than this fraction; 0 = never.
    """
    low, high, called = -1.0, 1.0, 0
    verdict: RaceVerdict = "undecided"
    # Planned looks that were not reached yet have no interval.
    for look, interval in zip(looks, intervals, strict=False):
        low, high, before = max(low, interval.low), min(high, interval.high), verdict
        verdict = _verdict(low, high, margin)
        if verdict != before:
            called = look if verdict != "undecided" else 0
    if low > high:  # the ends contradict each other, as one race in twenty may
        low, high = high, low
    return RaceState(rounds, difference, Interval(low, high), verdict, called)


def _verdict(low: float, high: float, margin: float) -> RaceVerdict:
    """Return the verdict that the interval of the difference gives; "undecided" if the interval is empty (low > high).

    low, high: the ends of the interval. margin: differences smaller than this count as equal.
    """
    if low > high:
        return "undecided"
    if low > 0:
        return "better"
    if high < 0:
        return "worse"
    return "equal within the margin" if low > -margin and high < margin else "undecided"


def confirm(
    state: RaceState, candidate: NDArray[np.bool_], baseline: NDArray[np.bool_], looks: Sequence[int]
) -> RaceState:
    """Return `state`, changed to "undecided" if its "better" or "worse" awaits later rounds or is contradicted by them.

    candidate, baseline: (rounds, Q), whether each sample is right. looks: the rounds at which the race
    is looked at; the last is the whole race.
    """
    if state.verdict not in ("better", "worse"):
        return state
    rounds, called, most = state.rounds, count_noun(state.called, "round"), looks[-1]
    sign = 1 if state.verdict == "better" else -1
    # Only a verdict of the first half of the race has to wait.
    due = state.called
    if 2 * state.called <= most:
        due = min(most, math.ceil(CONFIRMING * state.called))
    why = ""
    if rounds < due:
        look = next(look for look in looks if look >= due)
        why = f"{state.verdict} after {called}, to be confirmed by round {look}"
    else:
        split = state.called if state.called < rounds else rounds // 2
        change, error = change_after(candidate, baseline, split)
        if -sign * change > DRIFT_ERRORS * error:
            why = (
                f"{state.verdict} after {called}, but after the first {split} the difference changes by "
                f"{in_points(change)} points: a server or a model may have changed, or the first "
                "rounds were luck; if further rounds do not settle it, a new race into another folder does"
            )
    return state._replace(verdict="undecided", withheld=why) if why else state


def change_after(candidate: NDArray[np.bool_], baseline: NDArray[np.bool_], split: int) -> tuple[float, float]:
    """Return by how much the difference of two runs changed after `split` rounds, and the standard error of the change.

    Both are 0 if there is no round before or after the split. candidate, baseline: (rounds, Q), whether each sample is
    right.
    """
    n, n_questions = candidate.shape
    if not 0 < split < n:
        return 0.0, 0.0
    gaps = candidate.mean(axis=1) - baseline.mean(axis=1)
    # The variance of one round's number of right samples, of both runs together.
    rates = candidate.mean(axis=0), baseline.mean(axis=0)
    spread = sum(float((p * (1 - p)).sum()) for p in rates) * n / (n - 1)
    error = math.sqrt(spread * (1 / split + 1 / (n - split))) / n_questions
    return float(gaps[split:].mean() - gaps[:split].mean()), error
