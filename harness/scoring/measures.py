"""Measures beside the accuracy, where a benchmark's authors report one: parts of answers, and versions of problems.

    measure                  of                               is
    share of parts           answers of several parts         mean over samples of the fraction of parts that are right
    share of all parts       answers of several parts         the same; a question weighs by its number of parts
    all versions right       problems in several versions     chance that a sample of each version is right
    versions: loss           problems in several versions     accuracy − all versions right
    versions: relative loss  problems in several versions     the loss / all versions right

A grader states the parts of an answer (`harness.grading.verifier.Parts`): ZebraLogic's cells, RULER's texts, the
instructions of IFEval and IFBench. Both shares are of all questions, also of those whose grader says only right or
wrong: such an answer is one part. So a share of parts is never below the accuracy of the same samples. Versions are
questions of one cluster with a column `version`, as UGMathBench has them; it calls the last three EAcc, Δ and RE (Xu et
al. 2025, arXiv:2501.13766).

The product of the versions' fractions right, e = Π p_v, estimates the chance that all are right without bias, because
their samples are independent. With n_v samples of a version, unbiased estimates over reruns are, for each problem,

    v_v = p_v (1 − p_v) / (n_v − 1)      variance of p_v
    Π p_v² − Π (p_v² − v_v)              variance of e
    Σ_v v_v Π_{u≠v} p_u / V              covariance of e and the problem's accuracy a = Σ p_v / V

The relative loss is 1/ρ − 1, where ρ = Σ e / Σ a is the mean of e/a weighted by a; its interval is that of ρ, each end
so transformed. With one sample of each question the spread over reruns is unknown, and the question interval, which
contains it, stands in as "at most".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from harness.core.inert import quoted
from harness.core.nouns import count_noun
from harness.scoring.intervals import (
    Array,
    Interval,
    cluster_numbers,
    effective_samples,
    estimate_limits,
    question_limits,
    sampling_limits,
    weighted_limits,
)
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import Intervals, mean_question_interval, sample_counts

VERSION = "version"
"""The field of a question's metadata that numbers the versions of a problem, which form a cluster."""

MeasureName = Literal[
    "share of parts", "share of all parts", "all versions right", "versions: loss", "versions: relative loss"
]


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One measure beside the accuracy, a fraction; the relative loss may be above 1.

    n: questions, or problems with all their versions, that it covers.
    """

    name: MeasureName
    value: float
    intervals: Intervals
    n: int


def measures(items: Sequence[QuestionTally]) -> tuple[Measure, ...]:
    """The measures that the questions allow; none for most benchmarks, whose answers have no parts or versions."""
    present = [item for item in items if item.n]
    return (*_of_parts(present), *_of_versions(present))


def _of_parts(items: Sequence[QuestionTally]) -> list[Measure]:
    """Return the shares of right parts (cells, texts, instructions): the mean over questions, and over all parts.

    A sample without an answer, or undecided, has no right part. A question without stated parts has one part.
    """
    if not any(item.parts for item in items) or uneven_parts(items):
        return []
    # The weight of a question is unknown if no grade states parts and all its samples are undecided.
    weighted = [item for item in items if item.parts or item.undecided < item.n]
    equal = np.full(len(items), 1.0)
    parts = np.array([float(item.parts or 1) for item in weighted])
    return [_share("share of parts", items, equal), _share("share of all parts", weighted, parts)]


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
        f"the grader states different totals of parts for answers to the same question, on "
        f"{count_noun(len(uneven), 'question')} (such as {uneven[0]}): the shares of right parts are left out. State "
        "one total for all answers to a question, also for an answer that cannot be read"
    )


def _share(name: MeasureName, items: Sequence[QuestionTally], weights: Array) -> Measure:
    """The mean share of right parts over the questions. weights: (Q,), of each question, not yet normed."""
    # Copies count as one sample: a question's sums shrink to its independent samples.
    counts, independent = sample_counts(items)
    shares = np.array([item.shares for item in items]) * independent / counts
    squares = np.array([item.squares for item in items]) * independent / counts
    means, weight = shares / independent, weights / weights.sum()
    question = _question_interval(means, weights, items)
    at_most = bool((independent == 1).all()) or any(item.independent is not None for item in items)
    limits = sampling_limits(shares, independent, weight, squares).interval()
    intervals = Intervals(
        sampling_interval=question if at_most and question is not None else limits,
        question_interval=question,
        at_most=at_most,
    )
    return Measure(name=name, value=float((weight * means).sum()), intervals=intervals, n=len(items))


def _question_interval(values: Array, weights: Array, items: Sequence[QuestionTally]) -> Interval | None:
    """The question interval of a weighted mean of `values`, (Q,); None for a single question or cluster."""
    clusters = cluster_numbers([item.cluster for item in items])
    if (weights == weights[0]).all() or not clusters.any():
        return mean_question_interval(values, items)
    return weighted_limits(values, weights, clusters).interval()


class _Problem(NamedTuple):
    """A problem in all its versions. accuracy: mean over its versions.

    all_right: the chance that one sample of each version is right. variance, all_right_variance, covariance: of
    `accuracy` and `all_right` over reruns; NaN where a version has one sample. draws: samples of the version with the
    fewest.
    """

    accuracy: float
    all_right: float
    variance: float
    all_right_variance: float
    covariance: float
    draws: float


def _of_versions(items: Sequence[QuestionTally]) -> list[Measure]:
    """The measures of problems in several versions; empty for fewer than two complete problems."""
    by_problem: dict[str, list[QuestionTally]] = {}
    for item in items:
        if VERSION in item.question.metadata and "cluster" in item.question.metadata:
            by_problem.setdefault(item.cluster, []).append(item)
    most = max(map(len, by_problem.values()), default=0)
    # A selection of questions may have left out versions of a problem, which would make it easier.
    problems = [_problem(versions) for versions in by_problem.values() if len(versions) == most]
    if most < 2 or len(problems) < 2:
        return []
    a, e, var_a, var_e, covariance, draws = np.array(problems).T  # the fields of `_Problem`, each over all problems
    n, ones = len(problems), np.ones(len(problems))
    ends = [
        Measure(name="all versions right", value=float(e.mean()), intervals=_intervals(e, ones, var_e, draws), n=n),
        Measure(
            name="versions: loss",
            value=float((a - e).mean()),
            intervals=_intervals(a - e, ones, var_a + var_e - 2 * covariance, draws),
            n=n,
        ),
    ]
    if e.sum() == 0:
        return ends
    ratio = float(e.sum() / a.sum())
    # A problem that is never right weighs nothing.
    solved = a > 0
    spread = (var_e + ratio**2 * var_a - 2 * ratio * covariance)[solved] / a[solved] ** 2
    of_ratio = _intervals(e[solved] / a[solved], a[solved], spread, draws[solved])
    intervals = msgspec.structs.replace(
        of_ratio,
        sampling_interval=_loss(of_ratio.sampling_interval),
        question_interval=_loss(of_ratio.question_interval),
    )
    return [*ends, Measure(name="versions: relative loss", value=1 / ratio - 1, intervals=intervals, n=n)]


def _problem(versions: Sequence[QuestionTally]) -> _Problem:
    """Estimate, by the module's formulas, how often a sample of a version is right, and how often all versions are."""
    rates = [item.correct / item.n for item in versions]
    counts = [item.n if item.independent is None else item.independent for item in versions]
    spread = [p * (1 - p) / (n - 1) if n > 1 else math.nan for p, n in zip(rates, counts, strict=True)]
    others = [math.prod(rates[:v] + rates[v + 1 :]) for v in range(len(rates))]
    return _Problem(
        accuracy=math.fsum(rates) / len(rates),
        all_right=math.prod(rates),
        variance=math.fsum(spread) / len(rates) ** 2,
        all_right_variance=math.prod(p * p for p in rates)
        - math.prod(p * p - s for p, s in zip(rates, spread, strict=True)),
        covariance=math.fsum(s * rest for s, rest in zip(spread, others, strict=True)) / len(rates),
        draws=float(min(counts)),
    )


def _intervals(values: Array, weights: Array, variances: Array, draws: Array) -> Intervals:
    """The intervals of the weighted mean of `values` of independent problems; all arguments are (problems,).

    variances: of each value over reruns; NaN = unknown, and then the question interval stands in for the sampling
    interval (`at_most`). draws: samples of each problem.
    """
    weight = weights / weights.sum()
    question = None
    if len(values) > 1:
        equal = (weights == weights[0]).all()
        limits = question_limits(values) if equal else weighted_limits(values, weights, np.arange(len(values)))
        question = limits.interval()
    variance = (weight**2 * variances).sum()
    if math.isnan(variance) or question is None:
        return Intervals(sampling_interval=question, question_interval=question, at_most=True)
    mean, n = np.asarray((weight * values).sum()), int(1 / (weight**2).sum())
    sampling = estimate_limits(mean, np.asarray(variance), n, float(effective_samples(draws, weight)))
    return Intervals(sampling_interval=sampling.interval(), question_interval=question)


def _loss(interval: Interval | None) -> Interval | None:
    """The interval of 1/ρ − 1; None where ρ may be 0."""
    return None if interval is None or interval.low <= 0 else Interval(1 / interval.high - 1, 1 / interval.low - 1)
