"""Decides, while a run is sampled, whether its accuracy has fallen below a reference by a loss that matters.

**Two tests at planned looks.** After each look the observed accuracy is tested against the reference r ("fail" if it is
too low for a truth of r) and against r − loss ("pass" if it is too high for a truth of r − loss). Each look has nominal
levels. Those of "fail" share false_alarm / number of critical benchmarks; those of "pass" spend, as t^0.6,
the chance of missing the loss (`looks.boundaries`). The time t of a look is its information, the variance of the
last look over its own: what all looks of a run share (the reference's error, the run's own deviation) makes early looks
know much of what the last one will. Three quarters of the false alarms are spent as sound runs end, since most are
decided early; the rest is the last look's (`looks.EARLY`).

**The error of one look**, if the truth is h: V = f h(1−h) (1/N + 1/M) + b² m. f is the share of a coin's variance that
is left when the question is given (the same questions are asked again), N the samples, M those of the reference, b the
deviation of runs beyond sampling, m how often it enters: 1 for this run (1/R for R runs), 1 for a reference that is a
run. It does not shrink with samples. A look's level is that of the signed root of the deviance of h(1−h)/V coin tosses,
or the normal one if that is larger: few wrong samples have a long tail (Brown, Cai and DasGupta 2001, Statistical
Science 16:101).

**An unlucky reference** errs by the same amount every night. So the level of "fail" is also at least half of its mean
over the tenth of references that err most, at the estimate of b: these alarm at most twice as often as is allowed.

**Deviation of runs.** `nights` learns it. A level of a test is its mean over what is possible for it.

**Futility.** A look that leaves a benchmark open also asks whether the rest could decide. Samples that
would only copy those that are there make a look the last one: it has that one's levels.

**f** comes from the samples themselves where questions have two or more. In the first round it comes from the baseline,
raised by a tenth, and is not below the distance of the samples from the baseline's rates.

**A part of the first round.** A large set is also looked at after 1/8, 1/4, 1/2 of its questions, drawn at random and
held against the same questions of a baseline, or against the floor. One sample of each of n random questions errs by at
most h(1−h)/n, which is V with f = 1: so such a look at a floor needs no other test.

No I/O, no clock. `make simulate WHAT=nights` checks the promise.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.deciding.looks import MAX_LOOKS, boundaries, planned_looks
from harness.deciding.nights import Deviations, upper_tail
from harness.scoring.stats import Array, effective_samples, sampling_variance_of_mean

SHARE_MARGIN = 1.1
"""Factor by which the share f of a baseline is raised before it stands for that of a candidate."""

SHARE_TOSSES = 8.0
"""Coin tosses that are mixed into the share f, so that a few samples which agree do not claim an error near 0."""

MIN_PART = 100
"""Fewest questions of a look at a part of the first round."""

MISSED_AT_LOOKS = 0.8
"""Part of the chance of missing the loss that a false "pass" may use; the rest is for "undecided"."""

SPENDING = 0.6
"""The looks up to the fraction t of all information share t to this power of the chance of missing the loss."""

USUAL_SHARE = 0.8
"""Share of a coin's variance that is left when the question is given, where no baseline says it: the largest usual."""

FEWEST_NIGHTS, TOLERATED, UNLUCKY_ERRORS = 3, 0.25, 1.64
"""Former nights that correct a reference: how many it takes, by what part of the loss an accepted model may differ from
it (standard deviation), and by how many errors of the reference they move it at most.
"""

FUTILE_ERRORS = 1.6
"""By how many standard errors the samples to come may differ from those that are there, before sampling is futile."""

_UNLUCKY, _UNLUCKY_WEIGHTS = np.array([1.3487, 1.6449, 2.2803]), np.array([5, 8, 5]) / 18
"""Normal quantiles of 91.1, 95 and 98.9%, and weights, whose mean is that of the tenth of references that err most
(Gauss and Legendre).
"""


class Reference(NamedTuple):
    """What a benchmark is held against. value: a fraction. samples: counted for it, of all questions; infinite for a
    stated limit. variance: what it errs by beyond sampling, such as rounding. runs: how often the deviation of runs
    enters it, 0 or 1. correct, counts: (…, Q), right samples and samples of each question of a baseline. Of several
    gates at once, arrays with the gates first.
    """

    value: Any
    samples: Any = math.inf
    variance: Any = 0.0
    runs: Any = 0.0
    correct: Array | None = None
    counts: Array | None = None

    def part(self, n: int) -> Reference:
        """The first `n` questions of a baseline; a floor is one of any part."""
        if self.correct is None or self.counts is None:
            return self
        correct, counts = self.correct[..., :n], self.counts[..., :n]
        value, samples = (correct / counts).mean(axis=-1), effective_samples(counts)
        return self._replace(value=value, samples=samples, correct=correct, counts=counts)

    def error(self, share: Any, sd: Any) -> Any:
        """The variance of its error. share: f. sd: deviation of runs."""
        return share * self.value * (1 - self.value) / self.samples + self.variance + sd**2 * self.runs


def corrected(reference: Reference, share: Any, loss: float, deviations: Deviations) -> Reference:
    """The reference with what former nights say of it: their accepted level, within what the reference may err by.

    share: f. That level may itself be worse or better than the reference by a part of the loss (`TOLERATED`).
    """
    error = reference.error(share, deviations.sd)
    knows = (np.asarray(deviations.known) >= FEWEST_NIGHTS) & (error > 0)
    if not knows.any():
        return reference
    of_level = np.sum(deviations.weights * deviations.doubts, axis=-1) + (TOLERATED * loss) ** 2
    most, weight = UNLUCKY_ERRORS * np.sqrt(error), error / (error + of_level)
    shift = np.clip(np.nan_to_num(weight * (deviations.level - reference.value)), -most, most)
    return reference._replace(
        value=reference.value + np.where(knows, shift, 0.0),
        samples=np.where(knows, math.inf, reference.samples),
        variance=np.where(knows, weight * of_level, reference.variance),
        runs=np.where(knows, 0.0, reference.runs),
    )


class Rules(NamedTuple):
    """The planned looks of one benchmark, in rounds, and the nominal level of both tests at each; of several gates at
    once, arrays with the gates last.
    """

    looks: tuple[float, ...]
    fail: Any
    passes: Any


def planned(n_questions: int, most: int) -> tuple[float, ...]:
    """The looks of a benchmark, in rounds: parts of the first round if it is large, then whole rounds up to `most`."""
    n_parts = int(math.log2(max(1, n_questions / MIN_PART))) if most <= MAX_LOOKS else 0
    return (*(0.5**k for k in range(n_parts, 0, -1)), *planned_looks(1, most))


@lru_cache(maxsize=1024)
def rules(looks: tuple[float, ...], error: Planned, false_alarm: float, missed: float) -> Rules:
    """The levels of these looks. false_alarm, missed: the chances that all looks share."""
    variances = [error.common + 1 / (look if look >= 1 else error.part * look) for look in looks]
    times = tuple(variances[-1] / each for each in variances)
    ends = boundaries(times, false_alarm, MISSED_AT_LOOKS * missed, SPENDING, error.drift)
    fail, passes = (tuple(NormalDist().cdf(-z) for z in each) for each in ends)
    return Rules(looks, fail, passes)


class Planned(NamedTuple):
    """What the levels depend on. common: the variance that more samples leave, as a multiple of one round's. drift: the
    loss in errors of the last look. part: the share of the variance of a part of the questions that the same samples of
    all questions have. Common and drift are in steps of √2: each night would integrate anew.
    """

    common: Any
    drift: Any
    part: float

    @classmethod
    def of(cls, n_questions: int, most: int, reference: Reference, loss: float, sd: Any, runs: float = 1.0) -> Planned:
        """reference: of all questions, as `corrected`. sd: of runs. runs: as in `level`."""
        share = share_planned(reference)
        single = share * reference.value * (1 - reference.value) / n_questions + 1e-9
        common = np.asarray((reference.error(share, sd) + sd**2 / runs) / single)
        drift = loss / np.sqrt((common + 1 / most) * single)
        common, drift = (2 ** (np.round(2 * np.log2(each)) / 2) for each in (common.clip(0.01, 100), drift.clip(1, 11)))
        return cls(common, drift, USUAL_SHARE if reference.correct is None else 1.0)


def share_planned(reference: Reference) -> Any:
    """The share f before any sample: the baseline's, or the largest usual."""
    if reference.correct is None or reference.counts is None:
        return USUAL_SHARE
    return np.minimum(USUAL_SHARE, share_left(reference.correct, reference.counts))


def share_left(correct: Array, counts: Array) -> Array:
    """The share f of a coin's variance that is left when the question is given; 1 for one sample of each question.

    correct, counts: (…, Q), right samples and samples of each question.
    """
    total, mean = counts.sum(axis=-1), correct.sum(axis=-1) / counts.sum(axis=-1)
    variance = sampling_variance_of_mean(correct, counts)
    tosses = total * mean * (1 - mean)
    observed = np.where(np.isnan(variance), tosses, total * total * variance)
    # `SHARE_TOSSES` in both sums draw the share towards 1, that of a coin: the fewer the samples, the more.
    return np.asarray(np.minimum(1.0, (observed + SHARE_TOSSES) / (tosses + SHARE_TOSSES)))


def share_of(correct: Array, counts: Array, reference: Reference) -> Array:
    """The share f of a candidate: by its own samples; in the first round by those of the baseline, if it is one.

    correct, counts: as in `share_left`.
    """
    own = share_left(correct, counts)
    if reference.correct is None or reference.counts is None or counts.max() > 1:
        return own
    rates = reference.correct / reference.counts
    apart = ((correct / counts - rates) ** 2 / (1 + 1 / reference.counts)).sum(axis=-1)
    mean = (correct / counts).mean(axis=-1)
    tosses = counts.shape[-1] * mean * (1 - mean) + SHARE_TOSSES
    least = SHARE_MARGIN * share_left(reference.correct, reference.counts)
    return np.asarray(np.minimum(own, np.maximum(least, (apart + SHARE_TOSSES) / tosses)))


def level(
    accuracy: Array,
    truth: Array | float,
    total: Array | float,
    share: Array,
    reference: Reference,
    deviations: Deviations,
    runs: float = 1.0,
    *,
    below: bool,
) -> Array:
    """The chance of an accuracy at least as low as this (below; else: as high), if the true one is `truth`.

    total: samples. share: `share_of`. runs: runs of this state that the samples are from.
    """
    # A reference of few samples is no certainty, nor is a truth of 0 or 1.
    truth = np.clip(truth, 0.5 / (reference.samples + 1) + 1e-6, 1 - 0.5 / (reference.samples + 1) - 1e-6)
    # The sign of a difference that speaks against `truth` is +1 from here on.
    sign = 1 if below else -1
    # An accuracy stands for half a sample around it.
    seen = np.clip(accuracy + sign * 0.5 / np.asarray(total), 1e-9, 1 - 1e-9)
    coin = np.asarray(truth * (1 - truth))
    own_sampling = np.asarray(share * coin / np.asarray(total))
    its_sampling = np.asarray(share * coin / reference.samples + reference.variance)
    times = 1 / runs + np.asarray(reference.runs)[..., None]
    variance = (own_sampling + its_sampling)[..., None] + deviations.variances * times
    difference = sign * (truth - seen)
    deviance = 2 * (seen * np.log(seen / truth) + (1 - seen) * np.log((1 - seen) / (1 - truth))) * coin
    signed_root = np.where(difference > 0, 1.0, -1.0) * np.sqrt(np.maximum(deviance, 0.0))
    gap = np.minimum(signed_root, difference)[..., None]
    chance = np.asarray((upper_tail(gap / np.sqrt(variance)) * deviations.weights).sum(axis=-1))
    if not below:
        return chance
    # Behind a reference that is too high lies a lower truth, of which samples err by another amount.
    error = np.sqrt(its_sampling + deviations.sd**2 * reference.runs)[..., None] * _UNLUCKY
    lower = np.clip(np.asarray(truth)[..., None] - error, 1e-6, 1.0)
    own = (own_sampling + deviations.sd**2 / runs)[..., None] * np.maximum(1.0, lower * (1 - lower) / coin[..., None])
    unlucky = upper_tail((gap - error) / np.sqrt(own)) @ _UNLUCKY_WEIGHTS
    return np.asarray(np.maximum(chance, unlucky / 2))


class LookVerdict(NamedTuple):
    """What a look says. turns: undecided answers could turn it. closed: it is open, and further samples would hardly
    decide. number: of the look whose levels it has.
    """

    failed: NDArray[np.bool_]
    passed: NDArray[np.bool_]
    turns: NDArray[np.bool_]
    closed: NDArray[np.bool_]
    number: int


class LookTests(NamedTuple):
    """The two tests of a benchmark's looks. best, least: the reference if its undecided answers are right, and if they
    are wrong. share: f. runs: as in `level`.
    """

    plan: Rules
    best: Reference
    least: Reference
    share: Any
    loss: float
    deviations: Deviations
    runs: float = 1.0

    def say(self, seen: tuple[Any, Any], total: Any, number: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether look `number` fails with the second of two accuracies, and whether it passes with the first."""
        common, (low, high) = (total, np.asarray(self.share)), map(np.asarray, seen)
        known = self.deviations, self.runs
        fails = level(high, self.least.value, *common, self.least, *known, below=True) <= self.plan.fail[number]
        lost = level(low, self.best.value - self.loss, *common, self.best, *known, below=False)
        return np.asarray(fails), np.asarray(~fails & (lost <= self.plan.passes[number]))

    def limits(self, total: float, number: int) -> tuple[float, float]:
        """The accuracies up to which a look fails, and from which on it passes, within 10 points of half the loss."""
        ends = []
        for test, held in enumerate((self.least, self.best)):
            low, high = (float(np.clip(held.value - self.loss / 2 + way, 0, 1)) for way in (-0.1, 0.1))
            while high - low > 1e-4:
                middle = (low + high) / 2
                fails, passes = self.say((middle, middle), total, number)
                low, high = (low, middle) if (passes if test else ~fails) else (middle, high)
            ends.append((low, high)[test])
        return ends[0], ends[1]

    def judge(self, right: Array, undecided: Array, counts: Array, most: Array | float, number: int) -> LookVerdict:
        """The verdict of look `number`. right, undecided, counts: (…, Q), of independent samples. most: their number
        after all rounds.
        """
        total, last = effective_samples(counts), len(self.plan.looks) - 1
        low, high = ((each / counts).mean(axis=-1) for each in (right, right + undecided))
        # Where all further samples are copies, this look is the last.
        is_last = self.plan.looks[number] > 1 and bool(np.all(most < 1.01 * total))
        number = last if is_last else number
        failed, passed = self.say((low, high), total, number)
        is_open = ~(failed | passed)
        turned = failed, passed
        if undecided.any() or self.best is not self.least:
            turned = self._replace(best=self.least, least=self.best).say((high, low), total, number)
        closed = is_open & (self.plan.looks[number] >= 1)
        if not is_last and closed.any():
            # Hardly any samples to come differ by more from those that are there.
            more = FUTILE_ERRORS * np.sqrt(self.share * low * (1 - low) * np.maximum(0.0, 1 / total - 1 / most))
            ends = self.say((np.minimum(low + more, 1.0), np.maximum(high - more, 0.0)), most, last)
            closed = closed & ~(ends[0] | ends[1])
        return LookVerdict(failed, passed, is_open & (turned[0] | turned[1]), closed, number)
