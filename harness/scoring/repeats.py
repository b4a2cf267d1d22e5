"""How much the accuracies of repeated runs differ: as observed, and as predicted by the sampling error. No I/O.

`correct` is the number of right samples among the `counts` samples of each question; for several runs, (runs, Q).
Results are fractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.scoring.stats import Z_95, Array, sampling_variance_of_mean

Counts: TypeAlias = NDArray[np.int64]
"""Numbers of samples of each question, (Q,) or (runs, Q)."""


class Repeats(NamedTuple):
    """How much the accuracy of a benchmark varies between runs. n: number of samples per question in each run.

    accuracies: accuracy of each run. errors: sampling error of each run (None for one sample per question). mean: mean
    of the accuracies. deviation: their standard deviation (n − 1 in the denominator). predicted: the expected
    deviation. limits: the range that contains the deviation in 95% of experiments.
    """

    n: int
    n_questions: int
    accuracies: list[float]
    errors: list[float | None]
    mean: float
    deviation: float
    predicted: float
    limits: tuple[float, float]


class SampleSize(NamedTuple):
    """The sampling error with n samples per question.

    predicted: the error computed from all samples of the experiment. runs: number of runs of this size. own: mean of
    the errors computed from each run's own samples; own_low, own_high: the range of 95% of these errors. deviation:
    standard deviation of the runs' accuracies; None for one run. mean_question_deviation: mean over questions of
    sd_q/√n, which some scripts print as the standard error of the accuracy.
    """

    n: int
    runs: int
    predicted: float
    own: float
    own_low: float
    own_high: float
    deviation: float | None
    mean_question_deviation: float


def single_variances(correct: Counts, counts: Counts) -> Array:
    """Return the unbiased variance of one sample's grade (0 or 1) for each question: p(1−p)·n_q/(n_q−1), with n_q ≥
    2.
    """
    rates = correct / counts
    return np.asarray(rates * (1 - rates) * counts / (counts - 1))


def rerun_deviation(correct: Counts, counts: Counts, n: float) -> float:
    """Return the sampling error that a new run with n samples of each of these questions would have.

    It is √(Σ_q p(1−p)·n_q/(n_q−1) / n) / Q; with n samples, the error is that of one sample divided by √n.
    """
    return math.sqrt(float(single_variances(correct, counts).sum()) / n) / len(counts)


def deviation_limits(deviation: float, runs: int) -> tuple[float, float]:
    """Return the range that contains the observed deviation of `runs` ≥ 2 accuracies in 95% of experiments.

    deviation: the expected deviation. The ends are deviation · √(χ²/(runs − 1)), with the quantiles of χ² as
    approximated by Wilson and Hilferty (1931, PNAS 17:684).
    """
    df = runs - 1

    def factor(z: float) -> float:
        # For one degree of freedom, the approximation of the lower limit is negative.
        return math.sqrt(max(0.0, 1 - 2 / (9 * df) + z * math.sqrt(2 / (9 * df))) ** 3)

    return deviation * factor(-Z_95), deviation * factor(Z_95)


def repeats_of(correct: Counts, counts: Counts) -> Repeats:
    """How much the accuracies of at least two runs differ, with the prediction from all their samples."""
    accuracies = (correct / counts).mean(axis=1)
    n = float(counts.mean())
    predicted = rerun_deviation(correct.sum(axis=0), counts.sum(axis=0), n)
    return Repeats(
        n=round(n),
        n_questions=counts.shape[1],
        accuracies=accuracies.tolist(),
        errors=[None if math.isnan(error) else error for error in _own_errors(correct, counts)],
        mean=float((correct / counts).mean()),
        deviation=float(accuracies.std(ddof=1)),
        predicted=predicted,
        limits=deviation_limits(predicted, len(accuracies)),
    )


def sizes_of(cells: Sequence[tuple[Counts, Counts]]) -> list[SampleSize]:
    """The sampling error of the accuracy, for each number of samples.

    cells: for each number of samples, right samples and all samples, each (runs, Q). The prediction uses all samples
    together.
    """
    right = np.sum([correct.sum(axis=0) for correct, _ in cells], axis=0)
    total = np.sum([counts.sum(axis=0) for _, counts in cells], axis=0)
    sizes = []
    for correct, counts in cells:
        n, own = float(counts.mean()), _own_errors(correct, counts)
        low, high = np.quantile(own, (0.025, 0.975)).tolist()
        sizes.append(
            SampleSize(
                n=round(n),
                runs=len(correct),
                predicted=rerun_deviation(right, total, n),
                own=float(np.mean(own)),
                own_low=low,
                own_high=high,
                deviation=float((correct / counts).mean(axis=1).std(ddof=1)) if len(correct) > 1 else None,
                mean_question_deviation=float(np.sqrt(single_variances(right, total) / n).mean()),
            )
        )
    return sizes


def _own_errors(correct: Counts, counts: Counts) -> list[float]:
    """Return the sampling error computed from each run's own samples; NaN with one sample per question."""
    errors: list[float] = np.sqrt(sampling_variance_of_mean(correct.astype(float), counts.astype(float))).tolist()
    return errors
