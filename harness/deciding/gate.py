"""Decides, while a run is being sampled, whether its accuracy has fallen below a reference by a loss that matters.

**Two tests at planned looks.** At each look, the observed accuracy is tested against the reference r ("fail" if it is
too low for a true accuracy of r) and against r − loss ("pass" if it is too high for a true accuracy of r − loss). Each
look has nominal levels. The "fail" levels share false_alarm / number of critical benchmarks; the "pass" levels spend
the chance of missing the loss as t^0.6 (`boundaries`). The time t of a look is its information: the variance of
the last look divided by its own. The errors that all looks of a run share (the reference's error, the run's own
deviation) mean that early looks already have much of the last look's information. Three quarters of the false alarms
are spent as healthy runs end, since most are decided early; the last look gets the rest (`EARLY`). The test statistic
is a Brownian motion whose time at each look is the look's information (Lan and DeMets 1983, Biometrika 70:659).

**The error of one look**, if the true accuracy is h: V = f h(1−h) (1/N + 1/M) + b² m. f is the fraction of a coin's
variance that remains for a given question (the same questions are asked again), N the number of samples, M the number
of the reference's samples, b the deviation of runs beyond sampling, and m how often b enters: 1 for this run (1/R for R
runs), plus 1 for a reference that is itself a run. More samples do not reduce b. A look's level is computed from the
signed root of the deviance of h(1−h)/V coin tosses, or from the normal distribution if that level is larger: a small
number of wrong samples has a long tail (Brown, Cai and DasGupta 2001, Statistical Science 16:101).

**An unlucky reference** is off by the same amount every night. So the "fail" level is also at least half of its mean
over the tenth of references with the largest error, at the estimate of b: these references raise at most twice the
allowed false alarms.

**Deviation of runs.** The policy specifies it; earlier nights only correct the reference (`correct_reference`).

**Futility.** A look that leaves a benchmark open also checks whether the remaining samples could decide it. If further
samples would only be copies of existing ones, the look becomes the last one and uses the last look's levels.

**f** is estimated from the run's samples if questions have at least two. In the first round it is the baseline's f
raised by a tenth, or the value implied by the distance of the samples from the baseline's rates if that is larger.

**A part of the first round.** A large benchmark also has looks after 1/8, 1/4, 1/2 of its questions, drawn at random
and compared with the same questions of a baseline, or with the floor. One sample of each of n random questions has a
variance of at most h(1−h)/n, which is V with f = 1, so such a look against a floor needs no other test.

No I/O, no clock. `make simulate WHAT=nights` checks the promised error rates.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.deciding.nightly_history import Learned, upper_tail
from harness.scoring.stats import Array, effective_samples, sampling_variance_of_mean

SHARE_MARGIN = 1.1
"""Factor by which a baseline's share f is raised before it is used for a candidate."""

SHARE_TOSSES = 8.0
"""Coin tosses mixed into the share f, so that a few samples that happen to agree do not imply an error near 0."""

MIN_PART = 100
"""Minimum number of questions of a look at a part of the first round."""

MISSED_AT_LOOKS = 0.8
"""Fraction of the chance of missing the loss that a false "pass" may use; the rest is for "undecided"."""

SPENDING = 0.6
"""The looks up to a fraction t of all information spend t to this power of the chance of missing the loss."""

USUAL_SHARE = 0.8
"""Share f of a coin's variance that remains for a given question, if there is no baseline: the largest usual value."""

FEWEST_NIGHTS, TOLERATED, UNLUCKY_ERRORS = 3, 0.25, 1.64
"""Correction of a reference by earlier nights: how many nights are needed, by what fraction of the loss an accepted
model may differ from the reference (standard deviation), and the largest shift, in standard errors of the reference.
"""

FUTILE_ERRORS = 1.6
"""By how many standard errors future samples are assumed to differ at most from the existing ones; if even these could
not decide, more sampling is futile.
"""

_UNLUCKY, _UNLUCKY_WEIGHTS = np.array([1.3487, 1.6449, 2.2803]), np.array([5, 8, 5]) / 18
"""Normal quantiles of 91.1, 95 and 98.9% with weights, to average over the tenth of references with the largest error
(Gauss–Legendre quadrature).
"""


class Reference(NamedTuple):
    """What a benchmark is compared with. value: a fraction. samples: effective number for all questions; infinite for a
    specified limit. variance: variance beyond sampling, such as from rounding. runs: how often the deviation of runs
    enters it, 0 or 1. correct, counts: (…, Q), right samples and all samples of each question of a baseline. For
    several gates at once, arrays with the gates first.
    """

    value: Any
    samples: Any = math.inf
    variance: Any = 0.0
    runs: Any = 0.0
    correct: Array | None = None
    counts: Array | None = None

    def part(self, n: int) -> Reference:
        """The first `n` questions of a baseline; a floor applies to any part."""
        if self.correct is None or self.counts is None:
            return self
        correct, counts = self.correct[..., :n], self.counts[..., :n]
        value, samples = (correct / counts).mean(axis=-1), effective_samples(counts)
        return self._replace(value=value, samples=samples, correct=correct, counts=counts)

    def error(self, share: Any, sd: Any) -> Any:
        """The variance of the reference's error. share: f. sd: deviation of runs."""
        return share * self.value * (1 - self.value) / self.samples + self.variance + sd**2 * self.runs


def correct_reference(reference: Reference, share: Any, loss: float, nights: Learned) -> Reference:
    """The reference corrected by earlier nights: moved toward their accepted level, within its own error.

    share: f. The accepted level may itself differ from the reference by a fraction of the loss (`TOLERATED`).
    """
    error = reference.error(share, nights.sd)
    knows = (np.asarray(nights.known) >= FEWEST_NIGHTS) & (error > 0)
    if not knows.any():
        return reference
    of_level = nights.level_variance + (TOLERATED * loss) ** 2
    most, weight = UNLUCKY_ERRORS * np.sqrt(error), error / (error + of_level)
    shift = np.clip(np.nan_to_num(weight * (nights.level - reference.value)), -most, most)
    return reference._replace(
        value=reference.value + np.where(knows, shift, 0.0),
        samples=np.where(knows, math.inf, reference.samples),
        variance=np.where(knows, weight * of_level, reference.variance),
        runs=np.where(knows, 0.0, reference.runs),
    )


class Rules(NamedTuple):
    """The planned looks of one benchmark, in rounds, and the nominal levels of both tests at each look. For several
    gates at once, arrays with the gates last.
    """

    looks: tuple[float, ...]
    fail: Any
    passes: Any


def look_sizes(n_questions: int, most: int) -> tuple[float, ...]:
    """The looks of a benchmark, in rounds: parts of the first round if the benchmark is large, then whole rounds up to
    `most`.
    """
    n_parts = int(math.log2(max(1, n_questions / MIN_PART))) if most <= MAX_LOOKS else 0
    return (*(0.5**k for k in range(n_parts, 0, -1)), *planned_looks(most))


@lru_cache(maxsize=1024)
def rules(looks: tuple[float, ...], error: Planned, false_alarm: float, missed: float) -> Rules:
    """The levels of these looks. false_alarm, missed: the total chances, shared by all looks."""
    variances = [error.common + 1 / (look if look >= 1 else error.part * look) for look in looks]
    times = tuple(variances[-1] / each for each in variances)
    of_reference, of_loss = (
        boundaries(times, false_alarm, MISSED_AT_LOOKS * missed, SPENDING, drift) for drift in (error.drift, error.lost)
    )
    fail, passes = (tuple(NormalDist().cdf(-z) for z in each) for each in (of_reference.below, of_loss.above))
    return Rules(looks, fail, passes)


class Planned(NamedTuple):
    """What the levels depend on. common: the variance that more samples do not reduce, as a multiple of one round's
    variance. drift: the loss in standard errors of the last look. part: the variance of n samples spread over all
    questions, as a fraction of the variance of n samples on a part of the questions. lost: the same as `drift` for the
    accuracy with the loss, whose variance is larger near 100%. All but the part are rounded to steps of √2, or each
    night would need a new integration.
    """

    common: Any
    drift: Any
    part: float
    lost: Any

    @classmethod
    def of(cls, n_questions: int, most: int, reference: Reference, loss: float, sd: float, runs: float = 1) -> Planned:
        """reference: for all questions (`correct_reference`). sd: deviation of runs. runs: as in `level`."""
        share = share_planned(reference)
        single = share * reference.value * (1 - reference.value) / n_questions + 1e-9
        fixed = reference.error(share, sd) + sd**2 / runs
        common = np.asarray(fixed / single)
        drift = loss / np.sqrt((common + 1 / most) * single)
        fallen = np.clip(reference.value - loss, 1e-9, 1)
        wider = share * fallen * (1 - fallen) / n_questions / most + fixed
        lost = np.minimum(drift, loss / np.sqrt(np.maximum(wider, 1e-12)))
        common, drift, lost = (
            2 ** (np.round(2 * np.log2(each)) / 2)
            for each in (common.clip(0.01, 100), drift.clip(1, 11), lost.clip(1, 11))
        )
        return cls(common, drift, USUAL_SHARE if reference.correct is None else 1.0, lost)


def share_planned(reference: Reference) -> Any:
    """The share f before any sample: the baseline's, or the largest usual value."""
    if reference.correct is None or reference.counts is None:
        return USUAL_SHARE
    return np.minimum(USUAL_SHARE, share_left(reference.correct, reference.counts))


def share_left(correct: Array, counts: Array) -> Array:
    """The share f of a coin's variance that remains for a given question; 1 for one sample of each question.

    correct, counts: (…, Q), right samples and all samples of each question.
    """
    total, mean = counts.sum(axis=-1), correct.sum(axis=-1) / counts.sum(axis=-1)
    variance = sampling_variance_of_mean(correct, counts)
    tosses = total * mean * (1 - mean)
    observed = np.where(np.isnan(variance), tosses, total * total * variance)
    # `SHARE_TOSSES` in both sums pull the share toward 1, a coin's share, more strongly with fewer samples.
    return np.asarray(np.minimum(1.0, (observed + SHARE_TOSSES) / (tosses + SHARE_TOSSES)))


def share_of(correct: Array, counts: Array, reference: Reference) -> Array:
    """The share f of a candidate: from its own samples, or in the first round from those of the baseline, if there is
    one.

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
    sd: float,
    runs: float = 1.0,
    *,
    below: bool,
) -> Array:
    """The chance of an accuracy at least as low as this (if `below`; otherwise at least as high), if the true one is
    `truth`.

    total: number of samples. share: `share_of`. sd: deviation of runs. runs: number of runs that the samples are from.
    """
    # A reference with few samples does not prove a true accuracy of 0 or 1.
    truth = np.clip(truth, 0.5 / (reference.samples + 1) + 1e-6, 1 - 0.5 / (reference.samples + 1) - 1e-6)
    # From here on, a positive difference is evidence against `truth`.
    sign = 1 if below else -1
    # Continuity correction by half a sample.
    seen = np.clip(accuracy + sign * 0.5 / np.asarray(total), 1e-9, 1 - 1e-9)
    coin = np.asarray(truth * (1 - truth))
    own_sampling = np.asarray(share * coin / np.asarray(total))
    its_sampling = np.asarray(share * coin / reference.samples + reference.variance)
    variance = own_sampling + its_sampling + sd**2 * (1 / runs + np.asarray(reference.runs))
    difference = sign * (truth - seen)
    deviance = 2 * (seen * np.log(seen / truth) + (1 - seen) * np.log((1 - seen) / (1 - truth))) * coin
    signed_root = np.where(difference > 0, 1.0, -1.0) * np.sqrt(np.maximum(deviance, 0.0))
    gap = np.minimum(signed_root, difference)
    chance = upper_tail(gap / np.sqrt(variance))
    if not below:
        return chance
    # If the reference is too high, the true accuracy is lower; the sampling variance is the one at that accuracy.
    error = np.sqrt(its_sampling + sd**2 * reference.runs)[..., None] * _UNLUCKY
    lower = np.clip(np.asarray(truth)[..., None] - error, 1e-6, 1.0)
    own = (own_sampling + sd**2 / runs)[..., None] * np.maximum(1.0, lower * (1 - lower) / coin[..., None])
    unlucky = upper_tail((gap[..., None] - error) / np.sqrt(own)) @ _UNLUCKY_WEIGHTS
    return np.asarray(np.maximum(chance, unlucky / 2))


class LookVerdict(NamedTuple):
    """The verdict of a look. turns: undecided answers could change it. closed: it is open, but further samples are
    unlikely to decide it. number: the look whose levels were used.
    """

    failed: NDArray[np.bool_]
    passed: NDArray[np.bool_]
    turns: NDArray[np.bool_]
    closed: NDArray[np.bool_]
    number: int


class LookTests(NamedTuple):
    """The two tests of a benchmark's looks. best, least: the reference with its undecided answers counted as right, and
    as wrong. share: f. sd, runs: as in `level`.
    """

    plan: Rules
    best: Reference
    least: Reference
    share: Any
    loss: float
    sd: float
    runs: float = 1.0

    def outcomes(self, seen: tuple[Any, Any], total: Any, number: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether look `number` fails at the second (higher) accuracy, and whether it passes at the first (lower)."""
        common, (low, high) = (total, np.asarray(self.share)), map(np.asarray, seen)
        runs = self.sd, self.runs
        fails = level(high, self.least.value, *common, self.least, *runs, below=True) <= self.plan.fail[number]
        lost = level(low, self.best.value - self.loss, *common, self.best, *runs, below=False)
        return np.asarray(fails), np.asarray(~fails & (lost <= self.plan.passes[number]))

    def limits(self, total: float, number: int) -> tuple[float, float]:
        """The highest accuracy at which a look fails and the lowest at which it passes, searched within 10 points of
        the reference minus half the loss.
        """
        ends = []
        for test, held in enumerate((self.least, self.best)):
            low, high = (float(np.clip(held.value - self.loss / 2 + way, 0, 1)) for way in (-0.1, 0.1))
            while high - low > 1e-4:
                middle = (low + high) / 2
                fails, passes = self.outcomes((middle, middle), total, number)
                low, high = (low, middle) if (passes if test else ~fails) else (middle, high)
            ends.append((low, high)[test])
        return ends[0], ends[1]

    def judge(self, right: Array, undecided: Array, counts: Array, most: Array | float, number: int) -> LookVerdict:
        """The verdict of look `number`. right, undecided, counts: (…, Q), independent samples. most: their number after
        all rounds.
        """
        total, last = effective_samples(counts), len(self.plan.looks) - 1
        low, high = ((each / counts).mean(axis=-1) for each in (right, right + undecided))
        # If all further samples are copies, this look is the last.
        is_last = self.plan.looks[number] > 1 and bool(np.all(most < 1.01 * total))
        number = last if is_last else number
        failed, passed = self.outcomes((low, high), total, number)
        is_open = ~(failed | passed)
        turned = failed, passed
        if undecided.any() or self.best is not self.least:
            turned = self._replace(best=self.least, least=self.best).outcomes((high, low), total, number)
        closed = is_open & (self.plan.looks[number] >= 1)
        if not is_last and closed.any():
            # Future samples are very unlikely to differ more than this from the existing ones.
            more = FUTILE_ERRORS * np.sqrt(self.share * low * (1 - low) * np.maximum(0.0, 1 / total - 1 / most))
            ends = self.outcomes((np.minimum(low + more, 1.0), np.maximum(high - more, 0.0)), most, last)
            closed = closed & ~(ends[0] | ends[1])
        return LookVerdict(failed, passed, is_open & (turned[0] | turned[1]), closed, number)


# ---- planned looks


MAX_LOOKS = 64
"""Largest number of planned looks; more looks would hardly decide earlier."""

EARLY = 0.75
"""The fraction of the false alarms that the looks before the last share. A fraction of 1 would leave none for the last
look, which finds most of the losses near the required power.
"""

REACH, WIDTH = 14.0, 0.004
"""Range and step of the grid on which the paths are integrated."""


def planned_looks(most: int) -> tuple[int, ...]:
    """The rounds after which a run of at most `most` rounds is tested; the last one is `most`.

    The run is tested after every round, or every few rounds if there would be more than `MAX_LOOKS` tests.
    """
    stride = math.ceil(most / MAX_LOOKS)
    return (*range(stride, most, stride), most)


class Boundaries(NamedTuple):
    """For each look, the number of standard errors beyond which a hypothesis is rejected: below, the one without drift;
    above, the one with drift.
    """

    below: tuple[float, ...]
    above: tuple[float, ...]


@lru_cache(maxsize=1024)
def boundaries(times: tuple[float, ...], below: float, above: float, power: float, drift: float) -> Boundaries:
    """The boundaries at each look, for a run that stops when it crosses one of them.

    times: the information of each look, increasing, on any scale. below, above: the total chances of a false rejection,
    shared by all looks. A fraction t of the information spends t^power of `above` (Kim and DeMets 1987, Biometrika
    74:149); `below` spends `EARLY` times the fraction of runs that have ended, and the rest at the last look. drift:
    downward, in standard errors of the last look, above 0. The density of the paths that have not ended at an
    earlier look is integrated numerically (Armitage, McPherson and Rowe 1969, J. R. Stat. Soc. A 132:235).
    """
    x = np.arange(-REACH, REACH + WIDTH / 2, WIDTH)
    lags, size = WIDTH * np.arange(1 - len(x), len(x)), 21600
    alive = np.zeros((2, len(x)))  # under each hypothesis
    alive[:, len(x) // 2] = 1 / WIDTH  # All paths start at 0.
    found: list[tuple[float, float]] = []
    spent, before, ended = [0.0, 0.0], 0.0, 0.0
    for look in times:
        # The density of the paths at this look: each has moved by a normal step since the last look.
        time = look / times[-1]
        steps = np.exp(-((lags + np.array([[0.0], [drift]]) * (time - before)) ** 2) / (2 * (time - before)))
        moved = np.fft.irfft(np.fft.rfft(alive, size) * np.fft.rfft(steps, size), size)[:, len(x) - 1 : 2 * len(x) - 1]
        alive = np.maximum(moved * WIDTH / math.sqrt(2 * math.pi * (time - before)), 0.0)
        root = math.sqrt(time)
        share = above * time**power
        high = max(-_quantile(alive[1][::-1], share - spent[1], x), -drift * time / 2)
        ended += float(alive[0][x > high].sum()) * WIDTH
        part = below * (1.0 if look == times[-1] else EARLY * ended)
        low = _quantile(alive[0], part - spent[0], x)
        # A result closer to this hypothesis than to the other does not reject it, unless a single test would.
        low = min(low, max(-drift * time / 2, -NormalDist().inv_cdf(1 - below) * root))
        spent, before = [part, share], time
        found.append((-low / root, (high + drift * time) / root))
        alive = np.where((x >= low) & (x <= high), alive, 0.0)
    return Boundaries(*zip(*found, strict=True))


def _quantile(density: Array, share: float, x: Array) -> float:
    """The point below which this share of the density lies, interpolated between grid points."""
    outside = np.cumsum(density) * WIDTH
    i = int(np.searchsorted(outside, share))
    if i == len(x):
        return float(x[-1])
    inner = outside[i - 1] if i else 0.0
    return float(x[i] - WIDTH * (0.5 - (share - inner) / max(outside[i] - inner, 1e-300)))
