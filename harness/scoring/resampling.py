"""By how much the accuracies of repeated runs differ: as observed, and as the sampling error predicts. No I/O.

Formulas are functions on arrays whose last axis runs over questions: `correct` of `counts` samples of each question.
Repeats are runs of their own, or they are drawn without replacement from one set of N samples of each question; the
number of right samples among n is then hypergeometric (Johnson, Kotz and Kemp 1992, Univariate Discrete Distributions,
ch. 6):

- `split_runs`: one permutation of each question's samples, cut into blocks of n. The samples are independent, so the
  blocks are as independent as runs: the expected variance between blocks is exactly that between reruns.
- `draw_runs`: every repeat draws n of the N again. Repeats share samples and lie closer together than runs, exactly by
  the finite-population factor √(1 − n/N) (Cochran 1977, Sampling Techniques, theorem 2.2).

Values are fractions.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.scoring.stats import Z_95, Array, sampling_variance_of_mean

Counts: TypeAlias = NDArray[np.int64]

Source = Literal["runs", "blocks", "draws"]
"""A repeat is a run of its own, a block of one run's samples (none used twice), or a draw from them (`draw_runs`)."""


def single_variances(correct: Counts, counts: Counts) -> Array:
    """Return for each question the unbiased variance of one sample's grade (0 or 1): p(1−p)·n_q/(n_q−1).

    correct: samples graded correct of each question. counts: all its samples, n_q ≥ 2.
    """
    rates = correct / counts
    return np.asarray(rates * (1 - rates) * counts / (counts - 1))


def rerun_deviation(correct: Counts, counts: Counts, n: float) -> float:
    """Return the sampling error that a new run with n samples of each of these questions would have.

    It is √(Σ_q p(1−p)·n_q/(n_q−1) / n) / Q. correct, counts: right samples and all samples of each question.
    """
    return math.sqrt(float(single_variances(correct, counts).sum()) / n) / len(counts)


def draw_deviation(correct: Counts, counts: Counts, n: int) -> float:
    """Return the standard deviation of the accuracy of n stored samples of each question, drawn without replacement.

    It is 0 if all stored samples are drawn. correct, counts: right samples and all stored samples of each question.
    """
    variances = single_variances(correct, counts) / n * (1 - n / counts)
    return math.sqrt(float(variances.sum())) / len(counts)


def mean_question_deviation(correct: Counts, counts: Counts, n: float) -> float:
    """Return the mean over questions of sd_q/√n, which some scripts print as the standard error of the accuracy.

    The accuracy's error is another: `rerun_deviation`. correct, counts: right samples and all samples of each
    question. n: samples of each question in a repeat.
    """
    return float(np.sqrt(single_variances(correct, counts) / n).mean())


def split_runs(correct: Counts, counts: Counts, n: int, runs: int, rng: np.random.Generator) -> Counts:
    """Cut each question's samples at random into `runs` blocks of n; return the right samples in each block: (runs, Q).

    No sample is in two blocks. correct, counts: right samples and all samples of each question; runs·n ≤ every count.
    """
    columns = [
        # The last part is what no block takes.
        rng.multivariate_hypergeometric([n] * runs + [total - runs * n], right, method="marginals")[:-1]
        for right, total in zip(correct.tolist(), counts.tolist(), strict=True)
    ]
    return np.stack(columns, axis=1)


def draw_runs(correct: Counts, counts: Counts, n: int, runs: int, rng: np.random.Generator) -> Counts:
    """Draw n samples of each question, anew for each of `runs`; return how many of them are right: (runs, Q).

    correct, counts: right samples and all samples of each question; n ≤ every count.
    """
    return rng.hypergeometric(correct, counts - correct, n, size=(runs, len(counts)))


def deviation_limits(deviation: float, runs: int) -> tuple[float, float]:
    """Return the range in which the observed deviation of `runs` ≥ 2 accuracies lies in 95 % of experiments.

    deviation: the expected deviation. The ends are deviation · √(χ²/(runs − 1)), with the quantiles of χ² as
    approximated by Wilson and Hilferty (1931, PNAS 17:684).
    """
    df = runs - 1

    def factor(z: float) -> float:
        # For one degree of freedom the approximation of the lower limit is negative.
        return math.sqrt(max(0.0, 1 - 2 / (9 * df) + z * math.sqrt(2 / (9 * df))) ** 3)

    return deviation * factor(-Z_95), deviation * factor(Z_95)


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """How much the accuracy of a benchmark varies between repeats. All values are fractions.

    source: see `Source`. n: samples of each question in each repeat; stored: samples of each question in the run that
    repeats are taken from, the fewest if questions differ (None: repeats are runs). accuracies, errors: the accuracy of
    each repeat, and its own sampling error (None for one sample a question). names: of the repeats' run folders, or
    their numbers. mean: the mean of the runs' accuracies, or the accuracy of all stored samples. deviation: the
    standard deviation of the accuracies (n − 1 in the denominator). predicted: the deviation to be expected; limits:
    the range in which the deviation lies in 95 % of experiments. run_error: the sampling error of one run of n samples,
    above `predicted` where draws share samples. n_within: the number of accuracies within 1.96 predicted deviations of
    the mean. mean_question_deviation: see the function of this name.
    """

    benchmark: str
    source: Source
    n: int
    stored: int | None
    n_questions: int
    names: tuple[str, ...]
    accuracies: tuple[float, ...]
    errors: tuple[float | None, ...]
    mean: float
    deviation: float
    predicted: float
    limits: tuple[float, float]
    run_error: float
    n_within: int
    mean_question_deviation: float
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> Literal["as predicted", "less than predicted", "more than predicted", "cannot say"]:
        """The observed deviation beside the predicted; "cannot say" if all samples of each question agree."""
        low, high = self.limits
        if not self.predicted:
            return "cannot say"
        if self.deviation < low:
            return "less than predicted"
        return "more than predicted" if self.deviation > high else "as predicted"


class SampleSize(msgspec.Struct, frozen=True, kw_only=True):
    """The sampling error of n samples of each question. Fractions.

    predicted: the error computed from all samples of the experiment. runs: number of repeats of this size. own: mean of
    the errors that each repeat computes from its own samples; own_low, own_high: the range of 95 % of these. deviation:
    the standard deviation of the repeats' accuracies; if repeats share samples, scaled to that of independent runs;
    None where it is unknown (one repeat; all samples drawn). mean_question_deviation: see the function of this name.
    """

    n: int
    runs: int
    predicted: float
    own: float
    own_low: float
    own_high: float
    deviation: float | None
    mean_question_deviation: float


class SampleSizes(msgspec.Struct, frozen=True, kw_only=True):
    """The sampling error by the number of samples. sizes: one entry for each number of samples.

    single: the error predicted for one sample of each question; n samples divide it by √n. source, stored: as in
    `Repeats`.
    """

    benchmark: str
    source: Source
    stored: int | None
    n_questions: int
    single: float
    sizes: tuple[SampleSize, ...]
    warnings: tuple[str, ...] = ()


def resampled_repeats(benchmark: str, correct: Counts, counts: Counts, n: int, runs: int, seed: int) -> Repeats:
    """Make `runs` ≥ 2 repeats of n samples of each question from one run's samples, and measure how far they differ.

    Repeats share no samples if each question has runs·n samples; otherwise each repeat draws anew from all samples.
    correct, counts: right samples and all samples of each question.
    """
    rng = np.random.default_rng(seed)
    blocks = runs * n <= counts.min()
    right = (split_runs if blocks else draw_runs)(correct, counts, n, runs, rng)
    run_error = rerun_deviation(correct, counts, n)
    return _repeats(
        benchmark,
        "blocks" if blocks else "draws",
        right,
        np.full_like(right, n),
        names=tuple(map(str, range(1, runs + 1))),
        stored=int(counts.min()),
        mean=float((correct / counts).mean()),
        predicted=run_error if blocks else draw_deviation(correct, counts, n),
        run_error=run_error,
        of_question=mean_question_deviation(correct, counts, n),
    )


def real_repeats(benchmark: str, names: tuple[str, ...], correct: Counts, counts: Counts) -> Repeats:
    """Measure how far the accuracies of at least two real runs differ, beside the prediction from all their samples.

    correct, counts: right samples and all samples, (runs, Q).
    """
    right, total = correct.sum(axis=0), counts.sum(axis=0)
    n = float(counts.mean())
    run_error = rerun_deviation(right, total, n)
    return _repeats(
        benchmark,
        "runs",
        correct,
        counts,
        names=names,
        stored=None,
        mean=float((correct / counts).mean()),
        predicted=run_error,
        run_error=run_error,
        of_question=mean_question_deviation(right, total, n),
    )


def resampled_sizes(
    benchmark: str, correct: Counts, counts: Counts, ns: tuple[int, ...], runs: int, seed: int
) -> SampleSizes:
    """Measure, for each number of samples n in `ns`, the error of `runs` accuracies of n samples drawn from one run.

    correct, counts: right samples and all samples of each question. ns: all ≥ 2.
    """
    rng = np.random.default_rng(seed)
    sizes = []
    for n in ns:
        right = draw_runs(correct, counts, n, runs, rng)
        shared = draw_deviation(correct, counts, n)
        run_error = rerun_deviation(correct, counts, n)
        seen = None
        if shared and runs > 1:
            # Repeats that share samples lie closer together than runs, by this factor.
            seen = _deviation((right / n).mean(axis=1)) * run_error / shared
        sizes.append(_size(right, np.full_like(right, n), run_error, seen, mean_question_deviation(correct, counts, n)))
    return SampleSizes(
        benchmark=benchmark,
        source="draws",
        stored=int(counts.min()),
        n_questions=len(counts),
        single=rerun_deviation(correct, counts, 1),
        sizes=tuple(sizes),
    )


def real_sizes(benchmark: str, cells: tuple[tuple[Counts, Counts], ...]) -> SampleSizes:
    """Measure, for each number of samples, the error of the accuracies of real runs.

    cells: for each number of samples, right samples and all samples, each (runs, Q). All samples together make the
    prediction.
    """
    right = np.sum([correct.sum(axis=0) for correct, _ in cells], axis=0)
    total = np.sum([counts.sum(axis=0) for _, counts in cells], axis=0)
    sizes = []
    for correct, counts in cells:
        n = float(counts.mean())
        seen = _deviation((correct / counts).mean(axis=1)) if len(correct) > 1 else None
        error = rerun_deviation(right, total, n)
        sizes.append(_size(correct, counts, error, seen, mean_question_deviation(right, total, n)))
    return SampleSizes(
        benchmark=benchmark,
        source="runs",
        stored=None,
        n_questions=len(total),
        single=rerun_deviation(right, total, 1),
        sizes=tuple(sizes),
    )


def _repeats(
    benchmark: str,
    source: Source,
    correct: Counts,
    counts: Counts,
    *,
    names: tuple[str, ...],
    stored: int | None,
    mean: float,
    predicted: float,
    run_error: float,
    of_question: float,
) -> Repeats:
    """Return the result of an experiment with repeats: the observed deviation beside the predicted.

    correct, counts: right samples and all samples, by repeat and question. of_question: `mean_question_deviation`. The
    others: as in `Repeats`.
    """
    accuracies = (correct / counts).mean(axis=1)
    return Repeats(
        benchmark=benchmark,
        source=source,
        n=round(float(counts.mean())),
        stored=stored,
        n_questions=counts.shape[1],
        names=names,
        accuracies=tuple(accuracies.tolist()),
        errors=tuple(None if math.isnan(error) else error for error in _own_errors(correct, counts)),
        mean=mean,
        deviation=_deviation(accuracies),
        predicted=predicted,
        limits=deviation_limits(predicted, len(names)),
        run_error=run_error,
        # An accuracy on the very end of the range counts, whatever its rounding.
        n_within=int((np.abs(accuracies - mean) <= Z_95 * predicted + 1e-12).sum()),
        mean_question_deviation=of_question,
    )


def _size(correct: Counts, counts: Counts, predicted: float, seen: float | None, of_question: float) -> SampleSize:
    """Return the result for one number of samples: the deviation that is predicted, seen, and estimated by each repeat.

    correct, counts: right samples and all samples, by repeat and question. seen: the deviation of the accuracies; None
    if unknown.
    """
    own = _own_errors(correct, counts)
    low, high = np.quantile(own, (0.025, 0.975)).tolist()
    return SampleSize(
        n=round(float(counts.mean())),
        runs=len(correct),
        predicted=predicted,
        own=float(np.mean(own)),
        own_low=low,
        own_high=high,
        deviation=seen,
        mean_question_deviation=of_question,
    )


def _own_errors(correct: Counts, counts: Counts) -> list[float]:
    """Return the sampling error that each repeat's own samples suggest; NaN with one sample of each question.

    correct, counts: right samples and all samples, (runs, Q).
    """
    errors: list[float] = np.sqrt(sampling_variance_of_mean(correct.astype(float), counts.astype(float))).tolist()
    return errors


def _deviation(values: NDArray[np.float64]) -> float:
    """Standard deviation, with n − 1 in the denominator."""
    return float(np.std(values, ddof=1))
