"""Intervals of mean tokens: hand-worked values, what is left out, coverage.

For: harness.scoring.tokens.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.scoring.score import score_benchmark
from harness.scoring.stats import t_factor
from harness.scoring.tokens import mean_of_tokens
from tests.scoring.graded import grade, question


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


def test_lengths_that_are_all_equal_have_an_interval_without_width() -> None:
    found = mean_of_tokens(np.full(8, 0.0), np.repeat([0, 1], 4), np.arange(2))
    assert found.sampling == (0.0, 0.0)


def test_one_cluster_has_no_question_interval() -> None:
    found = mean_of_tokens(np.array([10.0, 20.0]), np.array([0, 1]), np.zeros(2, dtype=np.intp))
    assert found.question is None


def test_a_score_has_them() -> None:
    questions = [question("q1"), question("q2")]
    tokens = {"q1": (100, 300, 100, 300), "q2": (200, 400, 200, 400)}
    grades = [
        grade(name, index, "c", completion_tokens=n) for name, row in tokens.items() for index, n in enumerate(row)
    ]
    score = score_benchmark(questions, grades, 4)
    assert score.tokens is not None
    assert score.tokens.completion is not None
    found = score.tokens.completion.mean
    assert found is not None
    assert found.sampling is not None
    assert found.sampling.low < 250 < found.sampling.high


def test_it_covers_also_where_few_samples_are_right() -> None:
    """Long-tailed tokens that differ by question, of right samples only, whose number changes from run to run: two of a
    question, on which 1.96 standard errors cover 87 %."""
    rng = np.random.default_rng(2)
    level, chance = rng.lognormal(8, 0.7, 30), rng.uniform(0.1, 0.6, 30)
    truth = (level * chance).sum() / chance.sum()
    of, held = np.repeat(np.arange(30), 2), 0
    for _ in range(400):
        values = level[of] * rng.lognormal(-0.125, 0.5, len(of))
        values[rng.random(len(of)) > chance[of]] = np.nan
        interval = mean_of_tokens(values, of, np.arange(30)).sampling or (0.0, math.inf)
        held += interval[0] <= truth <= interval[1]
    assert held >= 370
