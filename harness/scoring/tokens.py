"""Tokens of a benchmark's samples: how many, of which samples, and what the accuracy is within a smaller budget. Pure.

Accuracy within a budget b counts a sample as right if it is right and took at most b tokens. Of a run with a larger
limit this is an unbiased estimate of the accuracy of a run with `max_tokens = b` in which a cut reply counts as wrong.
A reply cut at b may hold its answer already; so where cut replies are graded too it is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.records import Grade, Key
from harness.scoring.estimators import quantile
from harness.scoring.intervals import Interval
from harness.scoring.tally import Columns, QuestionTally
from harness.scoring.uncertainty import Intervals, rate, rate_intervals

MIN_BUDGET = 256
"""Tokens of the smallest budget in the table; the next ones double it."""


class TokenCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the n samples whose server stated them: mean and quantiles (the smallest value that a tenth, a half …
    of the samples do not exceed)."""

    n: int
    mean: float
    p10: float
    p50: float
    p90: float
    p99: float
    largest: float


class TokenStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Completion tokens (reasoning included) and reasoning tokens of all samples, the right and the others.

    None where no server stated any.
    """

    completion: TokenCounts | None
    completion_right: TokenCounts | None
    completion_wrong: TokenCounts | None
    reasoning: TokenCounts | None
    reasoning_right: TokenCounts | None
    reasoning_wrong: TokenCounts | None


class BudgetScore(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy if every reply longer than `budget` completion tokens had counted as wrong, with its 95 % intervals.

    cut: fraction of the samples that are longer. accuracy_of_cut_text: the accuracy if longer replies were cut there
    and graded; accuracy_of_first_right: if every right reply had ended where its right answer first stands
    (`FirstRight`); both with their intervals. None = not asked for.
    """

    budget: int
    accuracy: float
    sampling_interval: Interval | None
    question_interval: Interval | None
    cut: float
    accuracy_of_cut_text: float | None = None
    accuracy_of_cut_text_intervals: Intervals | None = None
    accuracy_of_first_right: float | None = None
    accuracy_of_first_right_intervals: Intervals | None = None


class FirstRight(msgspec.Struct, frozen=True, kw_only=True):
    """Where the right answer first stands in a reply: in a box, behind "=", "is" or a colon, or as its answer.

    tokens: completion tokens up to there, of the right samples whose tokens are known. share: mean of these tokens over
    all of the reply's; share_p10, share_p50, share_p90: quantiles. n_passed_over: samples that are not right though the
    right answer stood in them, of n_not_right.
    """

    tokens: TokenCounts
    share: float
    share_p10: float
    share_p50: float
    share_p90: float
    n_passed_over: int
    n_not_right: int


def token_statistics(columns: Columns, reasoning: NDArray[np.float64] | None) -> TokenStatistics:
    """Of these samples. reasoning: reasoning tokens by place among the grades, NaN for unknown; None = none known."""
    thought = np.zeros(0) if reasoning is None else reasoning[columns.place]
    right = columns.correct
    thought_right = columns.correct if len(thought) else np.zeros(0, dtype=bool)
    return TokenStatistics(
        completion=_counts(columns.tokens),
        completion_right=_counts(columns.tokens[right]),
        completion_wrong=_counts(columns.tokens[~right]),
        reasoning=_counts(thought),
        reasoning_right=_counts(thought[thought_right]),
        reasoning_wrong=_counts(thought[~thought_right]),
    )


def accuracy_of_finished(items: Sequence[QuestionTally], columns: Columns) -> tuple[float, Intervals] | None:
    """Mean over questions of the fraction correct among the samples that `max_tokens` did not cut; its intervals.

    Questions without such a sample are left out: it says what the answers are worth once they are given, and is no
    score of the model. None where every sample was cut. columns: those of the items.
    """
    counts = np.bincount(columns.question[~columns.truncated], minlength=len(items))
    hits = np.bincount(columns.question[~columns.truncated & columns.correct], minlength=len(items))
    kept = np.flatnonzero(counts).tolist()
    if not kept:
        return None
    some, right = counts[kept].tolist(), hits[kept].tolist()
    mean = math.fsum(hit / n for hit, n in zip(right, some, strict=True)) / len(kept)
    return mean, rate_intervals(right, [items[place] for place in kept], some)


def budget_scores(items: Sequence[QuestionTally], columns: Columns) -> tuple[BudgetScore, ...]:
    """By budgets of 256, 512 … tokens, up to the first that no sample exceeds. columns: those of the items.

    Empty where the tokens of a sample are unknown, or a question has no sample.
    """
    if np.isnan(columns.tokens).any() or not all(item.n for item in items):
        return ()
    return tuple(_budget_score(items, columns, budget) for budget in budgets_of(columns.tokens))


def budgets_of(tokens: NDArray[np.float64]) -> list[int]:
    """256, 512 … from the first that a sample keeps to up to the first that all do."""
    if not len(tokens):
        return []
    budgets = [MIN_BUDGET]
    while budgets[-1] < tokens.max():
        budgets.append(2 * budgets[-1])
    return [budget for budget in budgets if budget >= tokens.min()]


def _budget_score(items: Sequence[QuestionTally], columns: Columns, budget: int) -> BudgetScore:
    """The accuracy within `budget` completion tokens; every question has samples, all with their tokens."""
    within = columns.tokens <= budget
    hits = np.bincount(columns.question[within & columns.correct], minlength=len(items)).tolist()
    accuracy, found = rate(items, hits)
    return BudgetScore(
        budget=budget,
        accuracy=accuracy,
        sampling_interval=found.sampling_interval,
        question_interval=found.question_interval,
        cut=int((~within).sum()) / len(within),
    )


def first_right(items: Sequence[QuestionTally], places: Mapping[Key, int]) -> FirstRight | None:
    """places: completion tokens up to where the right answer first stands, of the samples in which it does.

    A right sample that is not among them states it at its end. None without a right sample whose tokens are known.
    """
    grades = [grade for item in items for grade in item.grades]
    right = [g for g in grades if g.verdict == "correct" and g.completion_tokens]
    others = [g for g in grades if g.verdict != "correct"]
    until = [_until_right(g, places) for g in right]
    counts = _counts(np.array(until, dtype=float))
    if counts is None:
        return None
    shares = [n / (g.completion_tokens or n) for n, g in zip(until, right, strict=True)]
    p10, p50, p90 = (quantile(shares, q) or 0.0 for q in (0.1, 0.5, 0.9))
    return FirstRight(
        tokens=counts,
        share=math.fsum(shares) / len(shares),
        share_p10=p10,
        share_p50=p50,
        share_p90=p90,
        n_passed_over=sum(g.key in places for g in others),
        n_not_right=len(others),
    )


def accuracy_of_first_right(
    items: Sequence[QuestionTally], places: Mapping[Key, int], budget: int
) -> tuple[float, Intervals]:
    """The accuracy within `budget` if every right reply had ended where its right answer first stands; its
    intervals."""
    return rate(
        items,
        [sum(g.verdict == "correct" and _until_right(g, places) <= budget for g in item.grades) for item in items],
    )


def _until_right(grade: Grade, places: Mapping[Key, int]) -> int:
    whole = grade.completion_tokens or 0
    return min(places.get(grade.key, whole), whole)


def _counts(tokens: NDArray[np.float64]) -> TokenCounts | None:
    """NaN does not count."""
    known = tokens[~np.isnan(tokens)]
    if not len(known):
        return None
    p10, p50, p90, p99 = (int(quantile(known, q) or 0) for q in (0.1, 0.5, 0.9, 0.99))
    return TokenCounts(
        n=len(known),
        mean=math.fsum(known) / len(known),
        p10=p10,
        p50=p50,
        p90=p90,
        p99=p99,
        largest=int(known.max()),
    )
