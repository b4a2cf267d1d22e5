"""Accuracy against the tokens that an answer takes: one sample, or the majority of k samples. Pure.

A majority of k costs k samples. So a model of short replies may vote several times for what one long reply of another
takes, and pass@1 alone compares them at unequal cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from harness.scoring.intervals import Interval
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import maj_at


class SpentPoint(msgspec.Struct, frozen=True, kw_only=True):
    """What `tokens` completion tokens a question buy of one run: the accuracy of the majority of k samples (k = 1:
    pass@1).

    tokens: k times the mean over questions of a sample's. Intervals as in `Intervals`, 95 %.
    """

    run: str
    k: int
    tokens: float
    accuracy: float
    sampling_interval: Interval | None
    question_interval: Interval | None
    at_most: bool


def spent_points(run: str, items: Sequence[QuestionTally]) -> list[SpentPoint]:
    """The points of k = 1, 2, 4 … up to the samples that every question has; every question has samples.

    Empty where a sample's tokens are not stated.
    """
    per_question = []
    for item in items:
        tokens = [grade.completion_tokens for grade in item.grades]
        stated = [n for n in tokens if n is not None]
        if len(stated) < len(tokens):
            return []
        per_question.append(math.fsum(stated) / len(stated))
    each = math.fsum(per_question) / len(per_question)
    ks = [1 << exponent for exponent in range(min(item.n for item in items).bit_length())]
    return [
        SpentPoint(
            run=run,
            k=k,
            tokens=k * each,
            accuracy=estimate.value,
            sampling_interval=estimate.intervals.sampling_interval,
            question_interval=estimate.intervals.question_interval,
            at_most=estimate.intervals.at_most,
        )
        for k, estimate in maj_at(items, ks).items()
    ]
