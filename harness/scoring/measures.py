"""What a score reports beside the accuracy: the measures of a benchmark's authors, tokens, and accuracy by budget.

    measure                  is
    share of parts           mean over samples of the fraction of parts that are right
    share of all parts       the same; a question weighs by its number of parts
    G-Pass@k at t            chance that at least k t of k samples are right, for each k that the user asks for
    right from t of m        share of the samples with at least t of m points, the threshold that the card states
    F1                       2 P R / (P + R): P of the attempted answers that are right, R of all; of SimpleQA's form
    attempted, right of attempted    the share of samples with an answer; P
    RMS calibration error    how far stated confidences lie from the share right (`calibration`), of HLE's form

A grader states the parts of an answer (`harness.grading.verifier.Parts`): ZebraLogic's cells, RULER's texts, the
instructions of IFEval and IFBench. Both shares are of all questions, also of those whose grader says only right or
wrong: such an answer is one part. So a share of parts is never below the accuracy of the same samples.

The accuracy within a budget b counts a sample as right if it is right and took at most b tokens. From a run with a
larger limit this estimates without bias the accuracy of a run with `max_tokens = b` in which every cut reply counts as
wrong. A reply cut at b may hold its answer already: where cut replies are graded too, the estimate is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.benchmarks.judge_forms import JudgeForm
from harness.core.inert import quoted
from harness.core.nouns import count_noun
from harness.core.records import Grade
from harness.grading.verdict import JUDGE_RULE
from harness.scoring.stats import (
    Array,
    Estimate,
    Interval,
    IntervalEnds,
    effective_clusters,
    effective_samples,
    quantile,
    sampling_limits,
    sampling_limits_of,
    sampling_variance_of_mean,
    t_factor,
)
from harness.scoring.tally import QuestionTally, SampleColumns, shows_no_spread
from harness.scoring.uncertainty import accuracy, g_pass_at, mean_question_interval, rate, sample_counts, squares_of

G_PASS_SHARES = (0.5, 0.75)
"""Shares of k right samples for which G-Pass@k is reported; that of 1 is pass^k."""


def measures(
    items: Sequence[QuestionTally],
    ks: Sequence[int] = (),
    form: JudgeForm | None = None,
    right_from: float | None = None,
) -> dict[str, Estimate]:
    """Name → what the authors of a benchmark report beside the accuracy; empty for most benchmarks.

    A new measure is one function and one line here. ks: the numbers k that the user asks for. form: of the judge that
    the card names. right_from: the points from which a sample is right.
    """
    present = [item for item in items if item.n]
    has_points = any(item.lowest is not None for item in present)
    estimates: dict[str, Estimate | None] = {}
    if has_points and right_from is not None:
        most = f" of {form.points:g}" if form is not None and form.points is not None else ""
        estimates[f"right from {right_from:g}{most}"] = accuracy(present, verdicts=True).estimate
    if has_points and right_from is None:
        ks = ()
    if not has_points:
        estimates = {"share of parts": share_of_parts(present), "share of all parts": share_of_all_parts(present)}
    if form is not None and "f1" in form.measures and present:
        estimates["F1"] = f1(present)
        estimates["attempted"] = rate(present, [item.n - item.unanswered for item in present], verdicts=True)
        estimates["right of attempted"] = ratio_of_means(present, 1.0, 0.0, *_counted(present))
    if form is not None and "calibration" in form.measures:
        estimates |= calibration(present)
    estimates |= {f"G-Pass@{k} at {t:g}": g_pass_at(items, k, t).estimate for k in ks if k > 1 for t in G_PASS_SHARES}
    return {name: estimate for name, estimate in estimates.items() if estimate is not None}


def share_of_parts(items: Sequence[QuestionTally]) -> Estimate | None:
    """The share of right parts (cells, texts, instructions), mean over questions; None where no answer has parts.

    A sample without an answer, or undecided, has no right part. A question without stated parts has one part.
    """
    return _share(items, np.full(len(items), 1.0)) if _has_even_parts(items) else None


def share_of_all_parts(items: Sequence[QuestionTally]) -> Estimate | None:
    """As `share_of_parts`, but a question weighs by its number of parts."""
    # The weight of a question is unknown if no grade states parts and all its samples are undecided.
    weighted = [item for item in items if item.parts or item.undecided < item.n]
    parts = np.array([float(item.parts or 1) for item in weighted])
    return _share(weighted, parts) if _has_even_parts(items) else None


def _has_even_parts(items: Sequence[QuestionTally]) -> bool:
    return any(item.parts for item in items) and not uneven_parts(items)


def f1(items: Sequence[QuestionTally]) -> Estimate | None:
    """2 P R / (P + R), P the share of the attempted answers that are right and R that of all: 2 · right / (all +
    attempted).
    """
    return ratio_of_means(items, 2.0, 1.0, *_counted(items))


def _counted(items: Sequence[QuestionTally]) -> tuple[Array, Array]:
    """The right samples of each question, and those without an answer."""
    return np.array([item.correct for item in items]), np.array([item.unanswered for item in items])


MIN_RULINGS = 200
"""The fewest rulings of which a calibration error is given; of fewer, HLE's own program leaves out nearly all."""

CALIBRATION_BIN = 100
"""Replies of a bin, in the order of their confidence; the last bin takes the rest."""


def calibration(items: Sequence[QuestionTally]) -> dict[str, Estimate]:
    """The RMS calibration errors of the replies on which a judge has ruled, and the share that states a confidence;
    empty below `MIN_RULINGS` rulings, and where under half state one.

    As HLE's program computes it, a reply without a confidence counts as sure, and the last bin as nothing: the 100 to
    199 surest replies. Over all bins, only replies with a confidence count. Ties stand in the order of ids.
    """
    ruled = [grade for item in items for grade in item.grades if grade.rule == JUDGE_RULE]
    stated = [grade for grade in ruled if grade.confidence is not msgspec.UNSET]
    if len(ruled) < MIN_RULINGS or 2 * len(stated) < len(ruled):
        return {}
    errors = {
        "RMS calibration error, its authors' program": _rms_error(ruled, leaves_out_last=True),
        "RMS calibration error, all bins": _rms_error(stated, leaves_out_last=False),
        "states a confidence": len(stated) / len(ruled),
    }
    return {name: Estimate(value=value) for name, value in errors.items()}


def _rms_error(grades: Sequence[Grade], *, leaves_out_last: bool) -> float:
    """√Σ n_b/n (mean confidence − share right)² over bins b of replies."""
    confidence = np.array([1.0 if grade.confidence is msgspec.UNSET else grade.confidence for grade in grades])
    right = np.array([grade.verdict == "correct" for grade in grades])
    order = np.argsort(confidence, kind="stable")
    starts = [*range(0, max(1, len(order) // CALIBRATION_BIN) * CALIBRATION_BIN, CALIBRATION_BIN)]
    bins = np.split(order, starts[1:])[: -1 if leaves_out_last else None]
    gaps = [len(of) / len(order) * float(confidence[of].mean() - right[of].mean()) ** 2 for of in bins]
    return math.sqrt(math.fsum(gaps))


def ratio_of_means(
    items: Sequence[QuestionTally], gain: float, base: float, right: Array, silent: Array
) -> Estimate | None:
    """The ratio of two means over questions, gain · right / (base + attempted); None for 0 of 0. right, silent: samples
    of each question that are right, and that attempt nothing.

    Its variance is linearised (the delta method; `stats.between`): that of gain · right − ratio · (base + attempted),
    divided by the square of the mean below the line.
    """
    counts, independent = sample_counts(items)
    above, below = gain * right / counts, base + 1 - silent / counts
    if not (total := below.sum()):
        return None
    ratio = float(above.sum() / total)
    values = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    question = mean_question_interval(values, items, below)
    residuals = (gain - ratio * (base + 1), -ratio * (base + 1), -ratio * base)
    of_kind = (right, counts - right - silent, silent)
    sums, squares = (sum(each**power * n for each, n in zip(residuals, of_kind, strict=True)) for power in (1, 2))
    shrink = independent / counts
    variance = sampling_variance_of_mean(sums * shrink, independent, squares=squares * shrink)
    # right / below · gain is a share of so many answers: of the attempted ones, or half of all and half of those.
    answers = effective_samples(independent) * total / len(items) / gain
    limits = sampling_limits_of(np.asarray(ratio), variance * (len(items) / total) ** 2, answers)
    return _estimate(items, ratio, limits, question)


def _estimate(
    items: Sequence[QuestionTally], value: float, limits: IntervalEnds, question: Interval | None
) -> Estimate:
    """The estimate with these intervals, for the same questions (`limits`) and for other ones."""
    at_most = shows_no_spread(items)
    # Other questions differ by their difficulty, too, so their interval bounds that of the same questions.
    same = question if at_most and question is not None else limits.interval()
    return Estimate(value=value, sampling=same, question=question, at_most=at_most)


def uneven_parts(items: Sequence[QuestionTally]) -> str:
    """A warning if a grader states different totals for answers to one question; else empty.

    1 of 1 part and 3 of 4 are then shares of different things, and their mean is a share of none.
    """
    uneven = []
    for item in items:
        if item.parts:
            totals = item.facts["parts"]
            totals = totals[totals > 0]  # an undecided answer states none
            if totals.min() != totals.max():
                uneven.append(f"{quoted(item.question.question_id)}: {totals.min():,} to {totals.max():,}")
    if not uneven:
        return ""
    return (
        "the grader reports different numbers of parts for answers to the same question, on "
        f"{count_noun(len(uneven), 'question')} (such as {uneven[0]}), so the shares of correct parts are omitted"
    )


def _share(items: Sequence[QuestionTally], weights: Array) -> Estimate:
    """The mean share of right parts over the questions. weights: (Q,), of each question, not yet normed."""
    # Copies count as one sample: a question's sums shrink to its independent samples.
    counts, independent = sample_counts(items)
    shares = np.array([item.shares for item in items]) * independent / counts
    squares = np.array([item.squares for item in items]) * independent / counts
    means, weight = shares / independent, weights / weights.sum()
    question = mean_question_interval(means, items, None if (weights == weights[0]).all() else weights)
    limits = sampling_limits(shares, independent, weight, squares)
    return _estimate(items, float((weight * means).sum()), limits, question)


# ---- tokens and budgets

MIN_BUDGET = 256
"""Smallest budget in the table, in tokens; each further budget is twice the one before."""


MIN_FREEDOM = 2.0
"""Fewest degrees of freedom of a mean of tokens that has an interval: with one, its factor of 12.7 says nothing."""


class TokenCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics on tokens per sample, over samples for which the server reported a count."""

    n: int
    """Number of samples for which the server reported a count."""
    mean: Estimate
    """Mean number of tokens per sample."""
    p50: float
    """Median: the smallest count such that at least 50% of samples are at or below it."""
    p99: float
    """99th percentile: the smallest count such that at least 99% of samples are at or below it."""


class TokenStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts by kind of sample."""

    completion: TokenCounts | None
    """Completion tokens of all samples, including reasoning; None if no server reported any."""
    completion_right: TokenCounts | None
    """Completion tokens of the correct samples; None if no server reported any."""
    completion_wrong: TokenCounts | None
    """Completion tokens of all other samples; None if no server reported any."""
    reasoning: TokenCounts | None
    """Reasoning tokens of all samples; None if no server reported any."""


class BudgetScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score under a smaller token limit."""

    accuracy: Estimate
    """Accuracy if all replies longer than the limit counted as wrong."""
    cut: float
    """Fraction of samples longer than the limit."""


def token_statistics(
    columns: SampleColumns, reasoning: NDArray[np.float64] | None, clusters: NDArray[np.intp]
) -> TokenStatistics:
    """Return the token statistics of a score: of completions of all, right and wrong samples, and of reasoning.

    reasoning: reasoning tokens by position of the grade, NaN if not stated;
    None if no sample states them. clusters: the number of the cluster of each question of the columns.
    """

    def counts(tokens: NDArray[np.float64], which: NDArray[np.bool_] | None = None) -> TokenCounts | None:
        return _counts(tokens if which is None else np.where(which, tokens, np.nan), columns.question, clusters)

    right = columns.correct
    return TokenStatistics(
        completion=counts(columns.tokens),
        completion_right=counts(columns.tokens, right),
        completion_wrong=counts(columns.tokens, ~right),
        reasoning=None if reasoning is None else counts(reasoning[columns.position]),
    )


def n_cut(items: Iterable[QuestionTally]) -> int | None:
    """The samples of these questions that max_tokens cut; None where it is not stated of every sample."""
    counts = [item.n_cut for item in items]
    return None if None in counts else sum(filter(None, counts))


def accuracy_of_finished(items: Sequence[QuestionTally]) -> Estimate | None:
    """Mean over questions of the fraction correct among the samples that `max_tokens` did not cut.

    Questions without such a sample are left out, so this number is no score of the model: it says how often an answer
    is right once it is given. None if every sample was cut, or it is not known which were.
    """
    if n_cut(items) is None:
        return None
    answered = [item for item in items if item.uncut]
    if not answered:
        return None
    hits, samples = [item.uncut_right for item in answered], [item.uncut for item in answered]
    return rate(answered, hits, samples, squares_of(answered, (item.uncut_squares for item in answered)))


def budget_scores(items: Sequence[QuestionTally], columns: SampleColumns) -> dict[int, BudgetScore]:
    """A score for each budget in `budgets_of`. columns: of the items.

    Empty if a sample's tokens are unknown, or a question has no sample.
    """
    if np.isnan(columns.tokens).any() or not all(item.n for item in items):
        return {}
    return {budget: _budget_score(items, columns, budget) for budget in budgets_of(columns.tokens)}


def budgets_of(tokens: NDArray[np.float64]) -> list[int]:
    """The budgets 256, 512 …, from the first that some reply fits into to the first that all replies fit into."""
    budgets = [MIN_BUDGET]
    while budgets[-1] < tokens.max():
        budgets.append(2 * budgets[-1])
    return [budget for budget in budgets if budget >= tokens.min()]


def _budget_score(items: Sequence[QuestionTally], columns: SampleColumns, budget: int) -> BudgetScore:
    """The accuracy if every reply longer than `budget` tokens counted as wrong.

    Every question has samples, and all have a token count.
    """
    within = columns.tokens <= budget
    right = np.where(within, columns.right, 0.0)
    hits, squares = (np.bincount(columns.question, right**power, len(items)) for power in (1, 2))
    return BudgetScore(
        accuracy=rate(items, hits.tolist(), squares=squares_of(items, squares)), cut=int((~within).sum()) / len(within)
    )


def _counts(
    tokens: NDArray[np.float64], question: NDArray[np.integer], clusters: NDArray[np.intp]
) -> TokenCounts | None:
    """The counts of the stated tokens; None without any. NaN = not stated, or left out.

    question: the number of each sample's question; clusters: as in `token_statistics`.
    """
    n = int((~np.isnan(tokens)).sum())
    if not n:
        return None
    p50, p99 = (int(quantile(tokens[~np.isnan(tokens)], q) or 0) for q in (0.5, 0.99))
    return TokenCounts(n=n, mean=mean_of_tokens(tokens, question, clusters), p50=p50, p99=p99)


def mean_of_tokens(values: NDArray[np.float64], question: NDArray[np.integer], clusters: NDArray[np.intp]) -> Estimate:
    """The mean of `values`, of which NaN are left out; not all may be NaN.

    An interval is None if its variance has fewer than `MIN_FREEDOM` degrees of freedom: too few values, or clusters,
    show how far the values vary.

    The mean is a ratio, and a rerun changes both of its parts: the sum of the values, and the number of samples that
    are not left out (such as the right ones). So its variance is that of r = value − mean, with r = 0 for a sample that
    is left out (linearisation; Cochran 1977, Sampling Techniques, 6.4):

        same questions, asked again: Σ_q n_q var_q(r) / n²; a question with one sample takes the mean of the others'
        var; where all have one, that of all samples stands in, the largest it can be ("at most")
        other questions: G/(G − 1) Σ_g (Σ_{g} r)² / n² over the clusters g

    Lengths have long tails: few of them make the variance, and the mean is skew. So both intervals are taken on the
    scale of logarithms, with t at the degrees of freedom of `_freedom`.
    """
    present = ~np.isnan(values)
    n = int(present.sum())
    mean = math.fsum(values[present]) / n
    residuals = np.where(present, values - mean, 0.0)
    variance, freedom, at_most = _sampling_variance(residuals, question, len(clusters))
    groups = np.bincount(clusters, np.bincount(question, residuals, len(clusters))).astype(np.float64)
    of_questions = None
    if len(groups) > 1:
        error = math.sqrt((groups**2).sum() * len(groups) / (len(groups) - 1)) / n
        n_clusters = effective_clusters(np.bincount(clusters)) // 1
        of_questions = _skew_interval(mean, error, min(max(1.0, n_clusters - 1), _freedom(groups, 1)))
    return Estimate(
        value=mean,
        sampling=_skew_interval(mean, math.sqrt(variance) / n, freedom if n > MIN_FREEDOM else 0.0),
        question=of_questions,
        at_most=at_most,
        unit="tokens",
    )


def _sampling_variance(
    residuals: NDArray[np.float64], question: NDArray[np.integer], n_questions: int
) -> tuple[float, float, bool]:
    """The variance of the sum of the residuals if the same questions were asked again, its degrees of freedom, and
    whether it is only an upper bound, since every question has one sample.

    A question with one sample takes the mean variance of the others. residuals: r of `mean_of_tokens`, of each sample.
    question: the number of each sample's question.
    """
    counts = np.bincount(question, minlength=n_questions)
    repeated = counts > 1
    if not repeated.any():
        return float((residuals**2).sum()), _freedom(residuals, 1), True
    sums, squares = (np.bincount(question, weights, n_questions) for weights in (residuals, residuals**2))
    # A question with one sample has no spread: `maximum` keeps it from dividing by 0, and `where` leaves it out.
    within = np.where(repeated, squares - sums**2 / np.maximum(counts, 1), 0.0) / np.maximum(counts - 1, 1)
    variance = float((counts * np.where(repeated, within, within[repeated].mean())).sum())
    # Each residual minus its question's mean; in steps, so that one array of all samples is held and not three.
    deviations = (-sums / np.maximum(counts, 1))[question]
    deviations += residuals
    deviations = deviations[repeated[question]]
    n_means = int(repeated.sum())
    # Rounding may leave a sum just below 0 where all values are equal.
    return max(0.0, variance), _freedom(deviations, n_means), False


def _freedom(deviations: NDArray[np.float64], n_means: int) -> float:
    """Degrees of freedom of the sum of the squares of m deviations from `n_means` means: 1 / (1/K − 1/f), from 2 to f.

    f = m − n_means; K = (Σ d²)² / Σ d⁴ · f/m is the number of equal squares that would be as uncertain. Of normal
    deviations K is f/2; it is less with long tails, where a few squares make most of the sum. Satterthwaite (1946,
    Biometrics Bulletin 2:110) takes 2 K instead, as of a χ² with the mean and the variance of the squares; his
    intervals cover 2 points less, because a part of a long tail that no sample hit is missing in the squares (`make
    simulate`).
    """
    squares, free = deviations**2, len(deviations) - n_means
    fourth = float((squares**2).sum())
    if free < MIN_FREEDOM or not fourth:
        return float(free)
    equal = float(squares.sum()) ** 2 / fourth * free / len(deviations)
    return min(float(free), max(MIN_FREEDOM, 1 / max(1 / equal - 1 / free, 1 / free)))


def _skew_interval(mean: float, error: float, freedom: float) -> Interval | None:
    """The interval of a skew mean, mean · exp(± t · error / mean): it is symmetric for the logarithm of the mean.

    None with fewer degrees of freedom than `MIN_FREEDOM`.
    """
    if freedom < MIN_FREEDOM:
        return None
    factor = math.exp(t_factor(int(freedom)) * error / mean) if mean else 1.0
    return Interval(mean / factor, mean * factor)
