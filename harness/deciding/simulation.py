"""Simulates a gate before it starts: what it is likely to decide, and after how many rounds. No I/O, no clock."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.deciding.gate import FEWEST_NIGHTS, LookTests, Reference, Rules, correct_reference, share_of, share_planned
from harness.deciding.nightly_history import Learned
from harness.scoring.stats import Array


class Played(NamedTuple):
    """Simulated gates of one benchmark, each (R,): whether they failed, whether they passed, rounds, accuracies, and
    sampling variances.
    """

    failed: NDArray[np.bool_]
    passed: NDArray[np.bool_]
    rounds: Array
    accuracy: Array
    variance: Array


def play(
    rng: np.random.Generator,
    chances: Array,
    plan: Rules,
    reference: Reference,
    loss: float,
    sd: float,
    *,
    whole: Reference | None = None,
    copies: bool = False,
    undecided: float = 0.0,
) -> Played:
    """Simulate R gates, each up to the look that decides it. chances: (R, Q), the chance of a right sample, in random
    order, since the first questions are used as a random part. reference: if a baseline, its right samples are (R, Q).
    sd: deviation of runs. whole: the corrected reference, for whole rounds. copies: all samples of a question are
    equal, as from a server that ignores seeds. undecided: the fraction of undecided samples.
    """
    n_gates, n_questions = chances.shape
    failed, passed, rounds = np.zeros(n_gates, bool), np.zeros(n_gates, bool), np.zeros(n_gates)
    accuracy, variance = np.zeros(n_gates), np.zeros(n_gates)
    # For the gates that are still open: their indices, and the right and undecided samples of each question.
    still, (right, doubted), n_sampled = np.arange(n_gates), np.zeros((2, *chances.shape)), 0
    most = float(n_questions * (1 if copies else math.ceil(plan.looks[-1])))

    def of(each: Any, n_axes: int) -> Any:
        """The entries of the open gates, if the values differ between gates."""
        return each[still] if np.ndim(each) == n_axes else each

    for number, look in enumerate(plan.looks):
        n_rounds = 1 if copies else math.ceil(look)  # also 1 for a look at a part of the first round
        if more := n_rounds - n_sampled:
            own_chances = (1 - undecided) * chances[still]
            new = _binomial(rng, more, own_chances)
            right = right + new
            if undecided:
                doubted = doubted + rng.binomial(more - new, undecided / (1 - own_chances))
        n_sampled, n = n_rounds, math.ceil(min(look, 1) * n_questions)
        held = reference if whole is None or look < 1 else whole
        held = Reference(*map(of, held, (1, 1, 1, 1, 2, 2)))
        held = held.part(n) if look < 1 else held
        levels = plan._replace(fail=[of(each, 1) for each in plan.fail], passes=[of(each, 1) for each in plan.passes])
        counts, own = np.full(n, float(n_rounds)), right[:, :n]
        share = share_of(own, counts, held)
        tests = LookTests(levels, held, held, share, loss, sd)
        said = tests.judge(own, doubted[:, :n], counts, most, number)
        seen = own.mean(axis=-1) / n_rounds
        accuracy[still], rounds[still] = seen, look
        single = seen * (1 - seen) * share * (1 - look / 2 if look <= 1 and held.correct is None else 1)
        variance[still] = single / (n * n_rounds)
        failed[still], passed[still] = said.failed, said.passed
        goes_on = ~(said.failed | said.passed | said.closed) & (said.number == number)
        still, right, doubted = still[goes_on], right[goes_on], doubted[goes_on]
        if not len(still):
            break
    return Played(failed, passed, rounds, accuracy, variance)


def _binomial(rng: np.random.Generator, n: int, chances: Array) -> NDArray[np.int64]:
    """Successes in n trials. A single trial is drawn by a comparison, which is several times faster."""
    return rng.binomial(n, chances) if n > 1 else (rng.random(chances.shape) < chances).astype(np.int64)


def moved(chances: Array, accuracy: Array) -> Array:
    """The chances, changed so that their mean is `accuracy`, (R,); the order of the questions by difficulty stays the
    same. chances: (R, Q).
    """
    mean, target = chances.mean(axis=-1, keepdims=True), np.clip(accuracy, 0, 1)[:, None]
    lower = chances * target / np.maximum(mean, 1e-12)
    higher = 1 - (1 - chances) * (1 - target) / np.maximum(1 - mean, 1e-12)
    return np.asarray(np.where(target < mean, lower, higher).clip(0, 1))


class Forecast(NamedTuple):
    """The forecast for a benchmark: chances and mean rounds, without a loss and with the loss.

    alarm_if_twice: chance of a false alarm if runs differ by twice as much. findable: the smallest loss, as a fraction,
    that is found with the required power, given the rounds and the deviation of runs; None if not even a loss of 95% of
    the reference is found.
    """

    false_alarm: float
    passes: float
    rounds: float
    power: float
    rounds_of_loss: float
    findable: float | None
    alarm_if_twice: float


SIMULATED = 1000
"""Number of gates in one simulation of a small benchmark."""

MAX_SIMULATED = 3_000_000
"""Largest number of questions times gates in one simulation."""


def forecast(
    n_questions: int,
    plan: Rules,
    reference: Reference,
    loss: float,
    power: float,
    nights: Learned,
    undecided: float = 0.0,
    *,
    copies: bool = False,
) -> Forecast:
    """Simulate this policy with this baseline and this history, whose accepted level is taken as a healthy model's.

    power: the required chance of finding a loss. undecided: fraction of samples left undecided; all of them may be
    right, or all wrong. copies: as in `play`.
    """
    rng = np.random.default_rng(1)
    n, share = max(200, min(SIMULATED, MAX_SIMULATED // n_questions)), float(share_planned(reference))
    concentration = min(max(share / max(1 - share, 1e-3), 0.05), 50.0)
    whole = correct_reference(reference, share, loss, nights)
    truth = min(max(float(whole.value), 1e-3), 1 - 1e-3)
    rights, wrongs = truth * concentration, (1 - truth) * concentration
    if reference.correct is not None and reference.counts is not None:
        order = rng.permuted(np.tile(np.arange(n_questions), (n, 1)), axis=1)
        correct, counts = reference.correct[order], reference.counts[order]
        reference, whole = (each._replace(correct=correct, counts=counts) for each in (reference, whole))
        rights, wrongs = rights + correct, wrongs + counts - correct
    drawn = rng.beta(rights, wrongs, (n, n_questions))
    luck = rng.standard_normal(n).clip(-2.5, 2.5)
    # The reference has an error too: its true accuracy varies around its value.
    uncertain = truth, float(whole.error(share, nights.sd))
    usual = (nights.level, float(nights.level_variance)) if nights.known >= FEWEST_NIGHTS else uncertain

    def at(fallen: float, loss: float, times: float = 1.0) -> Played:
        center, error = uncertain if fallen else usual
        # Keep each run's accuracy within the possible range on both sides.
        apart = min(math.sqrt((times * nights.sd) ** 2 + error), min(truth, 1 - truth) / 2.5)
        at = moved(drawn, center + apart * luck - fallen)
        return play(rng, at, plan, reference, loss, nights.sd, whole=whole, copies=copies)

    well, lost = at(0.0, loss), at(loss - undecided, loss)
    power_of_loss, findable = float(lost.failed.mean()), None
    # The findable loss is between `low`, which is not found with the required power, and `high`, which is.
    low, high = (0.0, loss) if power_of_loss >= power else (loss, 0.95 * truth)
    if power_of_loss >= power or (high > low and at(high - undecided, high).failed.mean() >= power):
        while high - low > 0.001:
            middle = (low + high) / 2
            low, high = (low, middle) if at(middle - undecided, middle).failed.mean() >= power else (middle, high)
        findable = high
    return Forecast(
        false_alarm=float(well.failed.mean()),
        rounds=float(well.rounds.mean()),
        passes=float((at(undecided, loss) if undecided else well).passed.mean()),
        power=power_of_loss,
        rounds_of_loss=float(lost.rounds.mean()),
        findable=findable,
        alarm_if_twice=float(at(0.0, loss, 2.0).failed.mean()),
    )
