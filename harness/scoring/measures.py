"""What the authors of a benchmark report beside the accuracy.

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
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from harness.benchmarks.judge_forms import JudgeForm
from harness.core.inert import quoted
from harness.core.nouns import count_noun
from harness.core.records import Grade
from harness.grading.verdict import JUDGE_RULE
from harness.scoring.stats import (
    Array,
    Estimate,
    effective_samples,
    sampling_limits,
    sampling_limits_of,
    sampling_variance_of_mean,
)
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import accuracy, g_pass_at, mean_question_interval, rate, sample_counts

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
        estimates["right of attempted"] = _ratio(present, 1.0, 0.0)
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
    return _ratio(items, 2.0, 1.0)


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


def _ratio(items: Sequence[QuestionTally], gain: float, base: float) -> Estimate | None:
    """The ratio of two means over questions, gain · right / (base + attempted); None for 0 of 0.

    Its variance is linearised (the delta method; `stats.between`): that of gain · right − ratio · (base + attempted),
    divided by the square of the mean below the line.
    """
    counts, independent = sample_counts(items)
    right, silent = np.array([item.correct for item in items]), np.array([item.unanswered for item in items])
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
    limits = sampling_limits_of(np.asarray(ratio), variance * (len(items) / total) ** 2, answers).interval()
    at_most = bool((independent == 1).all()) or any(item.has_copies for item in items)
    return Estimate(
        value=ratio, sampling=question if at_most and question is not None else limits, question=question,
        at_most=at_most,
    )  # fmt: skip


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
        "the grader states different totals of parts for answers to the same question, on "
        f"{count_noun(len(uneven), 'question')} (such as {uneven[0]}): the shares of right parts are left out"
    )


def _share(items: Sequence[QuestionTally], weights: Array) -> Estimate:
    """The mean share of right parts over the questions. weights: (Q,), of each question, not yet normed."""
    # Copies count as one sample: a question's sums shrink to its independent samples.
    counts, independent = sample_counts(items)
    shares = np.array([item.shares for item in items]) * independent / counts
    squares = np.array([item.squares for item in items]) * independent / counts
    means, weight = shares / independent, weights / weights.sum()
    question = mean_question_interval(means, items, None if (weights == weights[0]).all() else weights)
    at_most = bool((independent == 1).all()) or any(item.has_copies for item in items)
    limits = sampling_limits(shares, independent, weight, squares).interval()
    # Other questions differ by their difficulty, too, so their interval bounds that of the same questions.
    return Estimate(
        value=float((weight * means).sum()),
        sampling=question if at_most and question is not None else limits,
        question=question,
        at_most=at_most,
    )
