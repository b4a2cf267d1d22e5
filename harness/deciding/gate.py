"""Decides, while a run is sampled, whether its accuracy has fallen below a reference by a loss that matters.

**Two tests at planned looks.** After each look the observed accuracy is tested against the reference r ("fail" if it is
too low for a truth of r) and against r − loss ("pass" if it is too high for a truth of r − loss). Each look has nominal
levels. Those of "fail" spend false_alarm / number of critical benchmarks over the looks as t^0.6; those of "pass" so
spend the chance of missing the loss (`race.boundaries`; Lan and DeMets 1983, Biometrika 70:659). The levels are
those of independent increments. What all looks of a run share (the reference's error, the run's own deviation) makes
the looks more alike, and by Slepian's inequality (1962, Bell Syst. Tech. J. 41:463) that only lowers the chance that
any of them errs. Each test holds whether or not the other one stops the run.

**The error of one look**, if the truth is h: V = f h(1−h) (1/N + 1/M) + b² m. f is the share of a coin's variance that
is left when the question is given (the same questions are asked again), N the samples, M those of the reference, b the
deviation of runs beyond sampling, m how often it enters: 1 for this run (1/R for R runs), 1 for a reference that is a
run. It does not shrink with samples. A look's level is that of the signed root of the deviance of h(1−h)/V coin tosses,
or the normal one if that is larger: few wrong samples have a long tail (Brown, Cai and DasGupta 2001, Statistical
Science 16:101).

**An unlucky reference** errs by the same amount every night. So the level of "fail" is also at least half of its mean
over the tenth of references that err most, at the estimate of b: these alarm at most twice as often as is allowed.

**Deviation of runs.** `nights` learns it. A level of a test is its mean over what is possible for it.

**Futility.** A look that leaves a benchmark open also asks whether the rest could decide (`is_futile`). Samples that
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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.deciding.nights import Deviations, upper_tail
from harness.deciding.nights import learnt_deviation as learnt_deviation
from harness.deciding.race import MAX_LOOKS, boundaries, planned_looks
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
"""The levels of the looks up to the fraction t of all rounds share t to this power of their chance: most gates are
decided early, and what later looks were to spend is lost.
"""

FEWEST_NIGHTS, TOLERATED, UNLUCKY_ERRORS = 3, 0.25, 1.64
"""Former nights that correct a reference: how many it takes, by what part of the loss an accepted model may differ from
it (standard deviation), and by how many errors of the reference they move it at most.
"""

FUTILE_ERRORS = 1.6
"""By how many standard errors the samples to come may differ from those that are there, before sampling is futile."""

_UNLUCKY, _UNLUCKY_WEIGHTS = np.array([1.3487, 1.6449, 2.2803]), np.array([5, 8, 5]) / 18
"""Normal quantiles of 91.1, 95 and 98.9 %, and weights, whose mean is that of the tenth of references that err most
(Gauss and Legendre).
"""


class Reference(NamedTuple):
    """What a benchmark is held against. value: a fraction. samples: counted for it, of all questions; infinite for a
    stated limit. variance: what it errs by beyond sampling, such as rounding. runs: how often the deviation of runs
    enters it, 0 or 1. correct, counts: (…, Q), right samples and samples of each question of a baseline.
    """

    value: float
    samples: float = math.inf
    variance: float = 0.0
    runs: float = 0.0
    correct: Array | None = None
    counts: Array | None = None


def corrected(reference: Reference, share: float, loss: float, deviations: Deviations) -> Reference:
    """The reference with what former nights say of it: their accepted level, within what the reference may err by.

    share: f. That level may itself be worse or better than the reference by a part of the loss (`TOLERATED`).
    """
    coin = reference.value * (1 - reference.value)
    error = share * coin / reference.samples + reference.variance + deviations.sd**2 * reference.runs
    if deviations.known < FEWEST_NIGHTS or not error:
        return reference
    of_level = float(np.sum(deviations.weights * deviations.doubts)) + (TOLERATED * loss) ** 2
    most = UNLUCKY_ERRORS * math.sqrt(error)
    shift = error / (error + of_level) * (deviations.level - reference.value)
    value, variance = reference.value + float(np.clip(shift, -most, most)), error * of_level / (error + of_level)
    return reference._replace(value=value, samples=math.inf, variance=variance, runs=0.0)


class Rules(NamedTuple):
    """The planned looks of one benchmark, in rounds, and the nominal level of both tests at each."""

    looks: tuple[float, ...]
    fail: tuple[float, ...]
    passes: tuple[float, ...]


def planned(n_questions: int, most: int) -> tuple[float, ...]:
    """The looks of a benchmark, in rounds: parts of the first round if it is large, then whole rounds up to `most`."""
    n_parts = int(math.log2(max(1, n_questions / MIN_PART))) if most <= MAX_LOOKS else 0
    return (*(0.5**k for k in range(n_parts, 0, -1)), *planned_looks(1, most))


@lru_cache(maxsize=256)
def rules(looks: tuple[float, ...], false_alarm: float, missed: float) -> Rules:
    """The levels of these looks. false_alarm, missed: the chances that all looks share."""
    tail = NormalDist().cdf
    fail, passes = (boundaries(looks, 2 * each, SPENDING) for each in (false_alarm, MISSED_AT_LOOKS * missed))
    return Rules(looks, tuple(tail(-z) for z in fail), tuple(tail(-z) for z in passes))


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
    accuracy: Array, truth: Array | float, total: Array | float, share: Array, reference: Reference,
    deviations: Deviations, runs: float = 1.0, *, below: bool,
) -> Array:  # fmt: skip
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
    variance = (own_sampling + its_sampling)[..., None] + deviations.variances * (1 / runs + reference.runs)
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


def look_at(
    correct: Array, counts: Array, look: int, plan: Rules, reference: Reference, loss: float, deviations: Deviations,
    runs: float = 1.0,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:  # fmt: skip
    """Whether the tests of the look say "fail", and "pass".

    correct, counts: (…, Q), right samples and independent samples of each question. look: its number, from 0. runs: as
    in `level`.
    """
    total, accuracy = effective_samples(counts), (correct / counts).mean(axis=-1)
    share = share_of(correct, counts, reference)
    fails = level(accuracy, reference.value, total, share, reference, deviations, runs, below=True) <= plan.fail[look]
    lost = level(accuracy, reference.value - loss, total, share, reference, deviations, runs, below=False)
    return np.asarray(fails), np.asarray(~fails & (lost <= plan.passes[look]))


def limits(
    share: Array | float, total: float, plan: Rules, look: int, references: tuple[Reference, Reference], loss: float,
    deviations: Deviations, runs: float = 1.0,
) -> tuple[float, float]:  # fmt: skip
    """The accuracies up to which a look fails, and from which on it passes; to 0.05 points, from 10 below to 10 above.

    references: if undecided answers count as right, and as wrong.
    """
    best, least = references
    seen, of = np.linspace(-0.1, 0.1, 401).clip(-best.value, 1 - best.value), np.asarray(share)
    low, high = least.value - loss / 2 + seen, best.value - loss / 2 + seen
    fails = level(low, least.value, total, of, least, deviations, runs, below=True) <= plan.fail[look]
    passes = level(high, best.value - loss, total, of, best, deviations, runs, below=False) <= plan.passes[look]
    return float(low[max(0, fails.sum() - 1)]), float(high[min(400, 401 - passes.sum())])


def is_futile(
    bounds: tuple[float, float], share: Array | float, totals: tuple[float, float], plan: Rules,
    references: tuple[Reference, Reference], loss: float, deviations: Deviations,
) -> bool:  # fmt: skip
    """Whether hardly any samples to come could decide: not if they differed by `FUTILE_ERRORS`, at the last look.

    bounds: the accuracy if undecided answers are wrong, and right; references: for either. totals: independent samples
    now, and with all rounds.
    """
    (low, high), (now, most), (best, least) = bounds, totals, references
    variance = float(share) * low * (1 - low) * max(0.0, 1 / now - 1 / most)
    more = FUTILE_ERRORS * math.sqrt(variance)
    ends = np.asarray(max(high - more, 0.0)), np.asarray(min(low + more, 1.0))
    common = most, np.asarray(share)
    fails = level(ends[0], least.value, *common, least, deviations, below=True) <= plan.fail[-1]
    passes = level(ends[1], best.value - loss, *common, best, deviations, below=False) <= plan.passes[-1]
    return not (fails or passes)


# ---- before it starts


class Played(NamedTuple):
    """Simulated gates of one benchmark: whether each failed, whether it passed, and its rounds, each (R,)."""

    failed: NDArray[np.bool_]
    passed: NDArray[np.bool_]
    rounds: Array


def play(
    rng: np.random.Generator, chances: Array, plan: Rules, reference: Reference, loss: float, deviations: Deviations,
    *, copies: bool = False,
) -> Played:  # fmt: skip
    """Simulate R gates, each up to the look that decides it. chances: (R, Q), of a right sample, in no order of their
    size: the first questions stand for a random part. reference: a baseline's right samples are (R, Q). copies: all
    samples of a question are one, as of a server that ignores seeds.
    """
    n_gates, n_questions = chances.shape
    failed, passed, rounds = np.zeros(n_gates, bool), np.zeros(n_gates, bool), np.zeros(n_gates)
    # Of the gates that are still open: their numbers, and right samples of each question.
    open_gates, correct, n_sampled = np.arange(n_gates), np.zeros(chances.shape), 0
    for number, look in enumerate(plan.looks):
        n_rounds = 1 if copies else math.ceil(look)  # also 1 for a look at a part of the first round
        correct = correct + rng.binomial(n_rounds - n_sampled, chances[open_gates])
        n_sampled, n = n_rounds, math.ceil(min(look, 1) * n_questions)
        held = reference
        if reference.correct is not None and reference.counts is not None:
            held = reference._replace(correct=reference.correct[open_gates, :n], counts=reference.counts[:n])
        fails, passes = look_at(correct[:, :n], np.full(n, float(n_rounds)), number, plan, held, loss, deviations)
        rounds[open_gates], failed[open_gates], passed[open_gates] = look, fails, passes
        goes_on = ~(fails | passes)
        open_gates, correct = open_gates[goes_on], correct[goes_on]
        if not len(open_gates):
            break
    return Played(failed, passed, rounds)


def moved(chances: Array, accuracy: Array) -> Array:
    """Chances whose mean is `accuracy`, (R,); each question keeps its place. chances: (R, Q)."""
    mean, target = chances.mean(axis=-1, keepdims=True), np.clip(accuracy, 0, 1)[:, None]
    lower = chances * target / np.maximum(mean, 1e-12)
    higher = 1 - (1 - chances) * (1 - target) / np.maximum(1 - mean, 1e-12)
    return np.asarray(np.where(target < mean, lower, higher).clip(0, 1))


class Forecast(NamedTuple):
    """What to expect of a benchmark: chances and mean rounds, if all is well and if the loss is there.

    alarm_if_twice: false alarms if runs differ by twice as much. findable: the least loss, a fraction, that is found
    with the wanted power by so many rounds and this deviation of runs; None if not even 95 % of the reference is.
    """

    false_alarm: float
    passes: float
    rounds: float
    power: float
    rounds_of_loss: float
    findable: float | None
    alarm_if_twice: float


MAX_SIMULATED = 3_000_000
"""Number of questions times gates that one simulation holds."""


def forecast(
    n_questions: int, plan: Rules, reference: Reference, loss: float, power: float, deviations: Deviations,
    share: float, undecided: float = 0.0, *, copies: bool = False, repeats: int = 2000, seed: int = 1,
) -> Forecast:  # fmt: skip
    """Simulate this very policy.

    power: the chance with which a loss is to be found; 0: `findable` is not looked for. undecided: share of
    the samples that are left so: all may be right, or wrong. copies: as in `play`. share: f of the benchmark, of
    which the spread of difficulty is made. repeats: gates of each simulation; fewer for a large benchmark
    (`MAX_SIMULATED`).
    """
    rng = np.random.default_rng(seed)
    n = max(200, min(repeats, MAX_SIMULATED // n_questions))
    concentration = min(max(share / max(1 - share, 1e-3), 0.05), 50.0)
    truth = min(max(reference.value, 1e-3), 1 - 1e-3)
    drawn = rng.beta(truth * concentration, (1 - truth) * concentration, (n, n_questions))
    drawn = moved(drawn, np.full(n, truth))
    if reference.counts is not None:
        reference = reference._replace(correct=rng.binomial(reference.counts.astype(int), drawn).astype(float))
    # The reference errs too: its truth lies about its value as a run's about its own.
    error = reference.variance + share * truth * (1 - truth) / reference.samples
    of_runs = rng.choice(deviations.variances, n, p=deviations.weights) * (1 + reference.runs)
    luck = rng.standard_normal(n).clip(-2.5, 2.5)

    def at(fallen: float, loss: float, times: float = 1.0) -> Played:
        # No run lies beyond what is possible, on either side.
        sd = np.minimum(np.sqrt(times**2 * of_runs + error), min(truth, 1 - truth) / 2.5)
        return play(rng, moved(drawn, truth + sd * luck - fallen), plan, reference, loss, deviations, copies=copies)

    well, lost = at(0.0, loss), at(loss - undecided, loss)
    power_of_loss, findable = float(lost.failed.mean()), None
    # The findable loss lies between `low`, which is not found with the wanted power, and `high`, which is.
    low, high = (0.0, loss) if power_of_loss >= power else (loss, 0.95 * truth)
    if power and (power_of_loss >= power or (high > low and at(high - undecided, high).failed.mean() >= power)):
        while high - low > 0.001:
            middle = (low + high) / 2
            low, high = (low, middle) if at(middle - undecided, middle).failed.mean() >= power else (middle, high)
        findable = high
    return Forecast(
        false_alarm=float(well.failed.mean()), rounds=float(well.rounds.mean()),
        passes=float((at(undecided, loss) if undecided else well).passed.mean()),
        power=power_of_loss, rounds_of_loss=float(lost.rounds.mean()), findable=findable,
        alarm_if_twice=float(at(0.0, loss, 2.0).failed.mean()),
    )  # fmt: skip
