"""Two runs on the same questions, paired; one run beside a published score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from harness.core.errors import UsageError
from harness.scoring.estimators import question_error, sampling_error, sampling_variance
from harness.scoring.published import PublishedScore
from harness.scoring.score import Score
from harness.scoring.tally import QuestionTally

Z_95 = 1.959963984540054
"""Two-sided 95 % of the normal distribution: |z| above it is called a difference."""

Verdict = Literal["compatible", "not compatible", "cannot say"]


class PairedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """First run minus second run over the questions that both asked.

    difference: mean over questions of the difference of their fractions correct. sampling_error: of that difference if
    both ran again on these questions; None when a run has one sample of every question. question_error: over other
    questions of the kind; contains the sampling error. z_sampling, z_question: difference over each; None where the
    error is unknown or 0. better, worse: questions on which the first run does better, worse. unpaired: questions
    that only one run has samples of, or that differ between the runs under one id.
    """

    benchmark: str
    n_questions: int
    first_accuracy: float
    second_accuracy: float
    difference: float
    sampling_error: float | None
    question_error: float | None
    z_sampling: float | None
    z_question: float | None
    better: int
    worse: int
    unpaired: int


class PublishedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A run's score minus a published one.

    error: standard error of the difference, None where a sample count is unknown; z: difference over it.
    verdict: "cannot say" comes with its reason. differing: setting → (ours, theirs), where theirs is stated.
    """

    published: PublishedScore
    ours: float | None
    difference: float | None
    error: float | None
    z: float | None
    verdict: Verdict
    reason: str
    differing: dict[str, tuple[Any, Any]]


def compare_runs(first: Sequence[QuestionTally], second: Sequence[QuestionTally]) -> PairedComparison:
    """The paired comparison of two runs of one benchmark (`tally(…).questions` of each).

    Pairing removes the difficulty of the questions, which both runs share. Raises `UsageError` if they share none.
    """
    others = {item.question.question_id: item for item in second if item.n}
    pairs = [
        (item, others[item.question.question_id])
        for item in first
        if item.n and _same_question(item, others.get(item.question.question_id))
    ]
    if not pairs:
        raise UsageError("the two runs share no question with samples in both; compare runs of the same benchmark")
    ours, theirs = [a.correct / a.n for a, _ in pairs], [b.correct / b.n for _, b in pairs]
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    difference = math.fsum(differences) / len(pairs)
    errors = [
        sampling_error(ours, [a.n for a, _ in pairs]).error,
        sampling_error(theirs, [b.n for _, b in pairs]).error,
    ]
    within = None if errors[0] is None or errors[1] is None else math.hypot(errors[0], errors[1])
    across = question_error(differences)
    asked = {item.question.question_id for item in (*first, *second) if item.n}
    return PairedComparison(
        benchmark=pairs[0][0].question.benchmark,
        n_questions=len(pairs),
        first_accuracy=math.fsum(ours) / len(pairs),
        second_accuracy=math.fsum(theirs) / len(pairs),
        difference=difference,
        sampling_error=within,
        question_error=across,
        z_sampling=difference / within if within else None,
        z_question=difference / across if across else None,
        better=sum(d > 0 for d in differences),
        worse=sum(d < 0 for d in differences),
        unpaired=len(asked) - len(pairs),
    )


def compare_published(
    score: Score,
    questions: Sequence[QuestionTally],
    published: PublishedScore,
    settings: Mapping[str, Any],
) -> PublishedComparison:
    """How a run's score stands to a published one of the same questions.

    Both are samples of the same questions, so only sampling errors enter. The published one's comes from its stated
    deviation over runs, else from our own spread per question and its own sample count. Where a count is unknown the
    error lies between two ends, and the verdict is given only if both agree. questions: `tally(…).questions` of the
    run. settings: of the run, by the names that the published file uses.
    """
    differing = {
        name: (settings.get(name), theirs)
        for name, theirs in published.settings.items()
        if settings.get(name) != theirs
    }
    ours, least, most = None, 0.0, math.inf
    reason = ""
    kind, _, k = published.metric.partition("@")
    if published.metric == "pass@1":
        ours = score.accuracy
    else:
        ours = (score.pass_at if kind == "pass" else score.maj_at).get(int(k))
        reason = f"the error of {published.metric} is not known"
    if ours is None:
        reason = f"this run has no {published.metric}"
    elif score.n_questions != published.n_questions:
        reason = f"this run has {score.n_questions} questions, the published score {published.n_questions}"
    elif score.n_missing:
        reason = f"this run is unfinished ({score.n_missing} samples missing)"
    elif not reason:
        least, most = _error_range(score, questions, published)
    difference = None if ours is None else ours - published.value
    verdict: Verdict = "cannot say"
    if not reason and difference is not None:
        if abs(difference) > Z_95 * most:
            verdict = "not compatible"
        elif abs(difference) <= Z_95 * least:
            verdict = "compatible"
        else:
            reason = "the number of samples of one of them is too small or not stated"
    error = most if math.isfinite(most) and math.isclose(least, most) else None
    return PublishedComparison(
        published=published,
        ours=ours,
        difference=difference,
        error=error,
        z=difference / error if error and difference is not None else None,
        verdict=verdict,
        reason=reason,
        differing=differing,
    )


def _same_question(item: QuestionTally, other: QuestionTally | None) -> bool:
    """One id may stand for different rows in two files of a benchmark: the row's digest decides."""
    return other is not None and item.question.row_digest == other.question.row_digest


def _error_range(score: Score, questions: Sequence[QuestionTally], published: PublishedScore) -> tuple[float, float]:
    """Least and greatest standard error of the difference."""
    bound = score.sampling_error_bound or 0.0
    our_least, our_most = (0.0, bound) if score.sampling_error is None else (score.sampling_error, score.sampling_error)
    variances = [sampling_variance(item.correct / item.n, item.n) for item in questions if item.n >= 2]
    if published.run_deviation is not None and published.samples is not None:
        their_least = their_most = published.run_deviation / math.sqrt(published.samples)
    elif not variances:
        single = math.sqrt(published.value * (1 - published.value) / published.n_questions)
        their_least, their_most = 0.0, single / math.sqrt(published.samples or 1)
    else:
        single = math.sqrt(math.fsum(variances) / len(variances) / published.n_questions)
        their_most = single / math.sqrt(published.samples or 1)
        their_least = their_most if published.samples is not None else 0.0
    return math.hypot(our_least, their_least), math.hypot(our_most, their_most)
