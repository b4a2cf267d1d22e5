"""Tokens of right and wrong samples, the accuracy of what was finished, and the accuracy within a smaller budget.

For: harness.scoring.tokens.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.scoring.score import Score, score_benchmark
from harness.scoring.stats import t_factor
from harness.scoring.tokens import mean_of_tokens
from tests.scoring.graded import grade, graded


def scored(*lengths: tuple[str, int | None]) -> Score:
    """One question; a letter and the tokens of each sample."""
    questions, _ = graded(q1="")
    grades = [grade("q1", i, letter, completion_tokens=n) for i, (letter, n) in enumerate(lengths)]
    return score_benchmark(questions, grades, len(lengths))


def test_tokens_are_told_apart_by_right_and_wrong() -> None:
    score = scored(("c", 100), ("c", 300), ("w", 1000), ("n", 2000), ("c", None))
    tokens = score.tokens
    assert tokens is not None
    found = [
        one and (one.n, one.mean.value, one.p50, one.p99)
        for one in (tokens.completion, tokens.completion_right, tokens.completion_wrong)
    ]
    assert found == [(4, 850, 300, 2000), (2, 200, 100, 300), (2, 1500, 1000, 2000)]
    assert score.tokens.reasoning is None  # no server stated them


def test_a_longer_reply_counts_as_wrong_within_a_budget() -> None:
    score = scored(("c", 200), ("c", 256), ("c", 257), ("w", 100), ("c", 900))
    found = {tokens: (one.accuracy.value, one.cut) for tokens, one in score.budgets.items()}
    assert found == {256: (0.4, 0.4), 512: (pytest.approx(0.6), 0.2), 1024: (pytest.approx(0.8), 0.0)}
    assert score.budgets[1024].accuracy == score.accuracy


def test_unknown_tokens_give_no_budgets() -> None:
    assert scored(("c", 200), ("c", None)).budgets == {}


def test_hand_worked() -> None:
    """Two questions with 10, 20 and 30, 60 tokens, twice each: mean 30, variances within 100/3 and 300."""
    values, of = np.array([10.0, 20.0, 10.0, 20.0, 30.0, 60.0, 30.0, 60.0]), np.repeat([0, 1], 4)
    found = mean_of_tokens(values, of, np.arange(2))
    # Σd² = 1000, Σd⁴ = 205,000, f = 6: K = 3.66 equal squares, 9.4 degrees of freedom, at most 6.
    factor = math.exp(t_factor(6) * math.sqrt(4 * 100 / 3 + 4 * 300) / 8 / 30)
    assert found.sampling == pytest.approx((30 / factor, 30 * factor))
    assert found.question is None  # two questions leave one degree of freedom
    assert not found.at_most


def test_one_sample_each_is_at_most() -> None:
    found = mean_of_tokens(np.array([10.0, 20.0, 30.0]), np.arange(3), np.arange(3))
    factor = math.exp(t_factor(2) * math.sqrt(200) / 3 / 20)
    assert found.at_most
    assert found.sampling == pytest.approx((20 / factor, 20 * factor))
    factor = math.exp(t_factor(2) * math.sqrt(200 * 3 / 2) / 3 / 20)
    assert found.question == pytest.approx((20 / factor, 20 * factor))


def test_a_long_length_leaves_few_degrees_of_freedom() -> None:
    """One of eight lengths makes nearly the whole variance: K = 1.1 of 7, 1.4 degrees of freedom, at least 2."""
    values = np.array([10.0, 11.0, 10.0, 11.0, 10.0, 11.0, 10.0, 200.0])
    found = mean_of_tokens(values, np.arange(8), np.arange(8)).sampling
    mean = values.mean()
    factor = math.exp(t_factor(2) * math.sqrt(((values - mean) ** 2).sum()) / 8 / mean)
    assert found == pytest.approx((mean / factor, mean * factor))


def test_one_length_says_nothing_of_others() -> None:
    found = mean_of_tokens(np.array([10.0, math.nan, math.nan]), np.arange(3), np.arange(3))
    assert found.sampling is None


def test_one_cluster_has_no_question_interval() -> None:
    found = mean_of_tokens(np.array([10.0, 20.0]), np.array([0, 1]), np.zeros(2, dtype=np.intp))
    assert found.question is None
