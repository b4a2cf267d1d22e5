"""What the authors of a benchmark report beside the accuracy.

    measure                  is
    share of parts           mean over samples of the fraction of parts that are right
    share of all parts       the same; a question weighs by its number of parts
    G-Pass@k at t            chance that at least k t of k samples are right, for each k that the user asks for

A grader states the parts of an answer (`harness.grading.verifier.Parts`): ZebraLogic's cells, RULER's texts, the
instructions of IFEval and IFBench. Both shares are of all questions, also of those whose grader says only right or
wrong: such an answer is one part. So a share of parts is never below the accuracy of the same samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.core.inert import quoted
from harness.core.nouns import count_noun
from harness.scoring.stats import Array, Estimate, sampling_limits
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import g_pass_at, mean_question_interval, sample_counts

G_PASS_SHARES = (0.5, 0.75)
"""Shares of k right samples for which G-Pass@k is reported; that of 1 is pass^k."""


def measures(items: Sequence[QuestionTally], ks: Sequence[int] = ()) -> dict[str, Estimate]:
    """Name → what the authors of a benchmark report beside the accuracy; empty for most benchmarks.

    A new measure is one function and one line here. ks: the numbers k that the user asks for.
    """
    present = [item for item in items if item.n]
    estimates = {"share of parts": share_of_parts(present), "share of all parts": share_of_all_parts(present)}
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
