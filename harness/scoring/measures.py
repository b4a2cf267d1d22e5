"""What a score reports in addition to the accuracy: the metrics of a benchmark's authors, tokens, and accuracy by
budget.

    metric                   meaning
    share of parts           mean over samples of the fraction of parts that are right
    share of all parts       the same, with each question weighted by its number of parts
    G-Pass@k at t            chance that at least k t of k samples are right, for each k that the user requests
    right from t of m        share of the samples with at least t of m points, the card's threshold
    F1                       2 P R / (P + R): P of attempted answers are right, R of all answers; for SimpleQA's form
    attempted, right of attempted    the share of samples with an answer, and P
    RMS calibration error    distance of stated confidences from the share right (`calibration`), for HLE's form

A grader reports the parts of an answer (`harness.grading.verifier.Parts`): ZebraLogic's cells, RULER's texts, the
instructions of IFEval and IFBench. Both shares cover all questions, including those whose grader reports only right or
wrong: such an answer counts as one part. So a share of parts is never below the accuracy of the same samples.

The accuracy within a budget b counts a sample as right if it is right and used at most b tokens. For a run with a
larger limit, this is an unbiased estimate of the accuracy of a run with `max_tokens = b` in which every truncated reply
counts as wrong. A reply truncated at b may already contain its answer, so if truncated replies are graded too, the
estimate is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import attrgetter

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.benchmarks.judge_forms import JudgeForm
from harness.core.number_text import count_noun
from harness.core.records import Grade
from harness.core.sanitize import quoted
from harness.grading.verifier import JUDGE_RULE
from harness.scoring import stats, uncertainty
from harness.scoring.stats import Array, Estimate, Interval, IntervalEnds
from harness.scoring.tally import QuestionTally, SampleColumns
from harness.scoring.uncertainty import mean_question_interval, rate

G_PASS_SHARES = (0.5, 0.75)
"""Shares t for which G-Pass@k is reported; with a share of 1 it would be pass^k."""


def measures(
    items: Sequence[QuestionTally],
    ks: Sequence[int] = (),
    form: JudgeForm | None = None,
    right_from: float | None = None,
) -> dict[str, Estimate]:
    """Name → value of each additional metric that a benchmark's authors report; empty for most benchmarks.

    A new metric needs one function and one line here. ks: the numbers k requested by the user. form: form of the judge
    that the card names. right_from: minimum points of a right sample.
    """
    present = [item for item in items if item.n]
    has_points = any(item.lowest is not None for item in present)
    estimates: dict[str, Estimate | None] = {}
    if not has_points:
        estimates |= shares_of_parts(present)
    elif right_from is None:
        ks = ()
    else:
        most = f" of {form.points:g}" if form is not None and form.points is not None else ""
        estimates[f"right from {right_from:g}{most}"] = uncertainty.accuracy(present, verdicts=True).estimate
    if form is not None and "f1" in form.measures and present:
        right, silent = (np.array([*map(attrgetter(name), present)]) for name in ("correct", "unanswered"))
        estimates["F1"] = ratio_of_means(present, 2.0, 1.0, right, silent)  # 2 · right / (all + attempted)
        estimates["attempted"] = rate(present, [item.n - item.unanswered for item in present], verdicts=True)
        estimates["right of attempted"] = ratio_of_means(present, 1.0, 0.0, right, silent)
    if form is not None and "calibration" in form.measures:
        estimates |= calibration(present)
    estimates |= {
        f"G-Pass@{k} at {t:g}": uncertainty.g_pass_at(items, k, t).estimate for k in ks if k > 1 for t in G_PASS_SHARES
    }
    return {name: estimate for name, estimate in estimates.items() if estimate is not None}


def shares_of_parts(items: Sequence[QuestionTally]) -> dict[str, Estimate]:
    """The share of right parts (cells, texts, instructions): the mean over questions, and the mean with each question
    weighted by its number of parts. Empty if no answer has parts.

    An undecided or missing answer has no right part. A question without reported parts has one part.
    """
    if not any(item.parts for item in items) or uneven_parts(items):
        return {}
    # The weight of a question is unknown if no grade reports parts and all its samples are undecided.
    weighted = [item for item in items if item.parts or item.undecided < item.n]
    parts = np.array([float(item.parts or 1) for item in weighted])
    return {"share of parts": _share(items, np.ones(len(items))), "share of all parts": _share(weighted, parts)}


MIN_RULINGS = 200
"""Minimum number of rulings for a calibration error; with fewer rulings, HLE's own program leaves out nearly all of
them.
"""

CALIBRATION_BIN = 100
"""Number of replies per bin, in the order of their confidence; the last bin also contains the remainder."""


def calibration(items: Sequence[QuestionTally]) -> dict[str, Estimate]:
    """The RMS calibration errors of the replies on which a judge has ruled, and the share of them with a stated
    confidence; empty if there are fewer than `MIN_RULINGS` rulings, or if less than half of the replies state a
    confidence.

    In HLE's program, a reply without a confidence counts as certain, and the last bin, with the 100 to 199 most
    confident replies, is ignored. The metric over all bins uses only replies with a confidence. Ties are in the order
    of ids.
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
    """√Σ n_b/n (mean confidence − share right)² over the bins b of replies."""
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
    """The ratio of two means over questions, gain · right / (base + attempted); None for 0 of 0. right, silent: number
    of right samples, and of samples without an attempt, per question.

    Its variance is linearized (delta method; `stats.between`): the variance of gain · right − ratio · (base +
    attempted), divided by the square of the mean denominator.
    """
    counts, independent = uncertainty.sample_counts(items)
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
    variance = stats.sampling_variance_of_mean(sums * shrink, independent, squares=squares * shrink)
    # The ratio is a share of this number of answers: the attempted ones, or the mean of all and attempted.
    answers = stats.effective_samples(independent) * total / len(items) / gain
    limits = stats.sampling_limits_of(np.asarray(ratio), variance * (len(items) / total) ** 2, answers)
    return _estimate(items, ratio, limits, question)


def _estimate(
    items: Sequence[QuestionTally], value: float, limits: IntervalEnds, question: Interval | None
) -> Estimate:
    """The estimate with these intervals, for the same questions (`limits`) and for other questions (`question`)."""
    at_most = uncertainty.shows_no_spread(items)
    # Other questions also differ in difficulty, so their interval bounds the interval for the same questions.
    same = question if at_most and question is not None else limits.interval()
    return Estimate(value=value, sampling=same, question=question, at_most=at_most)


def uneven_parts(items: Sequence[QuestionTally]) -> str:
    """A warning if a grader reports different totals for answers to the same question; otherwise empty.

    Then, for example, 1 of 1 part and 3 of 4 parts are shares of different things, and their mean is meaningless.
    """
    uneven = []
    for item in items:
        if item.parts:
            totals = item.facts["parts"]
            totals = totals[totals > 0]  # an undecided answer has none
            if totals.min() != totals.max():
                uneven.append(f"{quoted(item.question.question_id)}: {totals.min():,} to {totals.max():,}")
    if not uneven:
        return ""
    return (
        "the grader reports different numbers of parts for answers to the same question in "
        f"{count_noun(len(uneven), 'question')} (such as {uneven[0]}), so the fractions of correct parts are omitted"
    )


def _share(items: Sequence[QuestionTally], weights: Array) -> Estimate:
    """The mean share of right parts over the questions. weights: (Q,), weight of each question, not normalized."""
    # Copies count as one sample, so a question's sums are scaled down to its number of independent samples.
    counts, independent = uncertainty.sample_counts(items)
    shares = np.array([item.shares for item in items]) * independent / counts
    squares = np.array([item.squares for item in items]) * independent / counts
    means, weight = shares / independent, weights / weights.sum()
    question = mean_question_interval(means, items, None if (weights == weights[0]).all() else weights)
    limits = stats.sampling_limits(shares, independent, weight, squares)
    return _estimate(items, float((weight * means).sum()), limits, question)


# ---- tokens and budgets

MIN_BUDGET = 256
"""Smallest budget in the table, in tokens; each further budget is twice the previous one."""


MIN_FREEDOM = 2.0
"""Minimum degrees of freedom for the interval of a mean number of tokens: with one, the factor of 12.7 makes it
useless.
"""


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
    """Return the token statistics of a score: for completions of all, right and wrong samples, and for reasoning.

    reasoning: reasoning tokens by position of the grade, NaN if not reported; None if no sample reports them. clusters:
    index of each question's cluster, for the questions of the columns.
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
    """The number of samples truncated by max_tokens; None if this is not recorded for every sample."""
    counts = [item.n_cut for item in items]
    return None if None in counts else sum(filter(None, counts))


def accuracy_of_finished(items: Sequence[QuestionTally]) -> Estimate | None:
    """Mean over questions of the fraction correct among the samples that `max_tokens` did not truncate.

    Questions without such a sample are left out, so this number is not a score of the model: it is how often an answer
    is right once it is given. None if every sample was truncated, or if it is unknown which ones were.
    """
    if n_cut(items) is None:
        return None
    answered = [item for item in items if item.uncut]
    if not answered:
        return None
    hits, samples = [item.uncut_right for item in answered], [item.uncut for item in answered]
    return rate(answered, hits, samples, uncertainty.squares_of(answered, (item.uncut_squares for item in answered)))


def budget_scores(items: Sequence[QuestionTally], columns: SampleColumns) -> dict[int, BudgetScore]:
    """A score for each budget in `budgets_of`. columns: sample columns of the items.

    Empty if any sample's tokens are unknown, or if any question has no sample.
    """
    if np.isnan(columns.tokens).any() or not all(item.n for item in items):
        return {}
    return {budget: _budget_score(items, columns, budget) for budget in budgets_of(columns.tokens)}


def budgets_of(tokens: NDArray[np.float64]) -> list[int]:
    """The budgets 256, 512 …, from the first that fits any reply to the first that fits all replies."""
    budgets = [MIN_BUDGET]
    while budgets[-1] < tokens.max():
        budgets.append(2 * budgets[-1])
    return [budget for budget in budgets if budget >= tokens.min()]


def _budget_score(items: Sequence[QuestionTally], columns: SampleColumns, budget: int) -> BudgetScore:
    """The accuracy if every reply longer than `budget` tokens counted as wrong.

    Every question must have samples, and every sample a token count.
    """
    within = columns.tokens <= budget
    right = np.where(within, columns.right, 0.0)
    hits, squares = (np.bincount(columns.question, right**power, len(items)) for power in (1, 2))
    return BudgetScore(
        accuracy=rate(items, hits.tolist(), squares=uncertainty.squares_of(items, squares)),
        cut=int((~within).sum()) / len(within),
    )


def _counts(
    tokens: NDArray[np.float64], question: NDArray[np.integer], clusters: NDArray[np.intp]
) -> TokenCounts | None:
    """The counts of the reported tokens; None if there are none. NaN = not reported, or left out.

    question: index of each sample's question. clusters: as in `token_statistics`.
    """
    n = int((~np.isnan(tokens)).sum())
    if not n:
        return None
    p50, p99 = (int(stats.quantile(tokens[~np.isnan(tokens)], q) or 0) for q in (0.5, 0.99))
    return TokenCounts(n=n, mean=mean_of_tokens(tokens, question, clusters), p50=p50, p99=p99)


def mean_of_tokens(values: NDArray[np.float64], question: NDArray[np.integer], clusters: NDArray[np.intp]) -> Estimate:
    """The mean of `values`, without NaN; at least one value must not be NaN.

    An interval is None if its variance has fewer than `MIN_FREEDOM` degrees of freedom, that is, too few values or
    clusters to show how much the values vary.

    The mean is a ratio, and a rerun changes both of its parts: the sum of the values, and the number of samples that
    are not left out (such as the right ones). So its variance is the variance of r = value − mean, with r = 0 for a
    sample that is left out (linearization; Cochran 1977, Sampling Techniques, 6.4):

        same questions, asked again: Σ_q n_q var_q(r) / n²; a question with one sample gets the mean of the others'
        var; if all have one sample, the variance of all samples is used, an upper bound ("at most")
        other questions: G/(G − 1) Σ_g (Σ_{g} r)² / n² over the clusters g

    Lengths have long tails: a few of them dominate the variance, and the mean is skewed. So both intervals are computed
    on a logarithmic scale, with t at the degrees of freedom from `_freedom`.
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
        n_clusters = stats.effective_clusters(np.bincount(clusters)) // 1
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
    whether it is only an upper bound because every question has one sample.

    A question with one sample gets the mean variance of the others. residuals: r of `mean_of_tokens`, for each sample.
    question: index of each sample's question.
    """
    counts = np.bincount(question, minlength=n_questions)
    repeated = counts > 1
    if not repeated.any():
        return float((residuals**2).sum()), _freedom(residuals, 1), True
    sums, squares = (np.bincount(question, weights, n_questions) for weights in (residuals, residuals**2))
    # A question with one sample has no spread: `maximum` prevents a division by 0, and `where` leaves it out.
    within = np.where(repeated, squares - sums**2 / np.maximum(counts, 1), 0.0) / np.maximum(counts - 1, 1)
    variance = float((counts * np.where(repeated, within, within[repeated].mean())).sum())
    # Each residual minus its question's mean; in steps, to keep one array of all samples in memory instead of three.
    deviations = (-sums / np.maximum(counts, 1))[question]
    deviations += residuals
    deviations = deviations[repeated[question]]
    n_means = int(repeated.sum())
    # Rounding may leave a sum just below 0 if all values are equal.
    return max(0.0, variance), _freedom(deviations, n_means), False


def _freedom(deviations: NDArray[np.float64], n_means: int) -> float:
    """Degrees of freedom of the sum of squares of m deviations from `n_means` means: 1 / (1/K − 1/f), between 2 and f.

    f = m − n_means; K = (Σ d²)² / Σ d⁴ · f/m is the number of equal squares with the same uncertainty. For normal
    deviations, K is f/2; with long tails, where a few squares make up most of the sum, it is smaller. Satterthwaite
    (1946, Biometrics Bulletin 2:110) uses 2 K, from a χ² with the mean and variance of the squares; his intervals cover
    2 points less, because the squares miss any part of a long tail that no sample hit (`make simulate`).
    """
    squares, free = deviations**2, len(deviations) - n_means
    fourth = float((squares**2).sum())
    if free < MIN_FREEDOM or not fourth:
        return float(free)
    equal = float(squares.sum()) ** 2 / fourth * free / len(deviations)
    return min(float(free), max(MIN_FREEDOM, 1 / max(1 / equal - 1 / free, 1 / free)))


def _skew_interval(mean: float, error: float, freedom: float) -> Interval | None:
    """The interval of a skewed mean, mean · exp(± t · error / mean), which is symmetric for the logarithm of the mean.

    None if there are fewer than `MIN_FREEDOM` degrees of freedom.
    """
    if freedom < MIN_FREEDOM:
        return None
    factor = math.exp(stats.t_factor(int(freedom)) * error / mean) if mean else 1.0
    return Interval(mean / factor, mean * factor)
