"""Intervals of mean tokens: hand-worked values, what is left out, coverage.

For: harness.scoring.tokens.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.scoring.stats import t_factor
from harness.scoring.tokens import mean_of_tokens


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
