"""Accuracy against the tokens that an answer takes: one sample, or the majority of k samples. Pure.

A majority of k costs k samples. So a model of short replies may vote several times for what one long reply of another
takes, and pass@1 alone compares them at unequal cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.records import Grade
from harness.scoring.intervals import Interval, widest_limits
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import maj_at, mean_question_interval

WEIGHTED_DRAWS = 500
"""Number of draws of k samples for weighted votes: a standard error of at most 2.3 points a question, and of less than
half a point for 30 questions.
"""


class SpentPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy of the majority of k samples of one run (k = 1: pass@1), and what it costs in tokens.

    tokens: completion tokens for each question: k times the mean length of a sample. weighted: the accuracy if each
    vote counts 1/(tokens of its reply), since the shorter replies to a question tend to be right (Hassid et al. 2025,
    arXiv:2505.17813). Intervals as in `Intervals`, 95 %.
    """

    run: str
    k: int
    tokens: float
    accuracy: float
    sampling_interval: Interval | None
    question_interval: Interval | None
    at_most: bool
    weighted: bool = False


def spent_points(run: str, items: Sequence[QuestionTally]) -> list[SpentPoint]:
    """Return the points (tokens of an answer, accuracy) of the majority of k = 1, 2, 4 … samples of each question.

    The largest k is the largest power of two up to the fewest samples of a question. For k from 2 on, a second point
    has weighted votes: the mean of `WEIGHTED_DRAWS` seeded draws, with the widest interval. Empty if the tokens of any
    sample are not stated.
    """
    per_question = []
    for item in items:
        tokens = [grade.completion_tokens for grade in item.grades]
        stated = [n for n in tokens if n is not None]
        if len(stated) < len(tokens):
            return []
        per_question.append(math.fsum(stated) / len(stated))
    mean_tokens = math.fsum(per_question) / len(per_question)
    ks = [1 << exponent for exponent in range(min(item.n for item in items).bit_length())]
    plain = [
        SpentPoint(
            run=run,
            k=k,
            tokens=k * mean_tokens,
            accuracy=estimate.value,
            sampling_interval=estimate.intervals.sampling_interval,
            question_interval=estimate.intervals.question_interval,
            at_most=estimate.intervals.at_most,
        )
        for k, estimate in maj_at(items, ks).items()
    ]
    return plain + [
        SpentPoint(
            run=run,
            k=k,
            tokens=k * mean_tokens,
            accuracy=float(values.mean()),
            sampling_interval=widest_limits(values.mean(), len(items)).interval(),
            question_interval=mean_question_interval(values, items),
            at_most=True,
            weighted=True,
        )
        for k, values in weighted_votes(items, [k for k in ks if k > 1]).items()
    ]


def weighted_votes(items: Sequence[QuestionTally], ks: Sequence[int]) -> dict[int, NDArray[np.float64]]:
    """Return for each k the expected correctness of the answer whose votes weigh most among k samples.

    The values are by question, (Q,). A vote weighs 1/tokens of its reply. As in `maj_at_k`, tied answers share the win
    and samples without an answer do not vote.
    """
    rng, of_k = np.random.default_rng(0), {k: np.zeros(len(items)) for k in ks}
    for number, item in enumerate(items):
        answers = sorted({grade.vote for grade in item.grades if _votes(grade)}, key=str)
        # The number of each sample's answer; samples that do not vote get the number behind the last.
        group = np.array([answers.index(g.vote) if _votes(g) else len(answers) for g in item.grades])
        right = np.array([g.verdict == "correct" for g in item.grades], dtype=float)
        size = np.bincount(group, minlength=len(answers) + 1)
        # Of each answer, the fraction of its samples that are graded correct.
        share = np.bincount(group, weights=right, minlength=len(answers) + 1)[:-1] / np.maximum(size[:-1], 1)
        weight = np.array([1 / max(1, g.completion_tokens or 1) for g in item.grades])
        order = rng.random((WEIGHTED_DRAWS, item.n)).argsort(axis=1)
        for k in ks:
            # The votes of each answer in each draw, (draws, answers); samples that do not vote are in the last column.
            drawn = order[:, :k]
            weights = np.zeros((WEIGHTED_DRAWS, len(answers) + 1))
            np.add.at(weights, (np.arange(WEIGHTED_DRAWS)[:, None], group[drawn]), weight[drawn])
            votes = weights[:, :-1]
            if not answers:
                continue
            most = votes.max(axis=1, keepdims=True)
            # Sums of the same weights in another order differ by rounding.
            winners = (votes >= most * (1 - 1e-12)) & (most > 0)
            of_k[k][number] = float(((winners * share).sum(axis=1) / np.maximum(winners.sum(axis=1), 1)).mean())
    return of_k


def _votes(grade: Grade) -> bool:
    """Whether the sample votes for an answer."""
    return grade.vote is not None and grade.verdict != "no_answer"
