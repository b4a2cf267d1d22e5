"""Intervals of mean tokens: hand-worked values, what is left out, coverage.

For: harness.scoring.tokens.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.scoring.intervals import t_factor
from harness.scoring.score import score_benchmark
from harness.scoring.tokens import mean_intervals
from tests.scoring.graded import grade, question


def test_hand_worked() -> None:
    """Two questions with 10, 20 and 30, 60 tokens: mean 30, variances within 50 and 450."""
    values, of = np.array([10.0, 20.0, 30.0, 60.0]), np.array([0, 0, 1, 1])
    found = mean_intervals(values, of, np.arange(2))
    reach = 1.959963984540054 * math.sqrt(2 * 50 + 2 * 450) / 4
    assert found.sampling_interval == pytest.approx((30 - reach, 30 + reach), rel=1e-3)
    sums = (-30, 30)
    reach = t_factor(1) * math.sqrt(2 * (sums[0] ** 2 + sums[1] ** 2)) / 4
    assert found.question_interval == pytest.approx((0.0, 30 + reach))
    assert not found.at_most


def test_one_sample_each_is_at_most() -> None:
    found = mean_intervals(np.array([10.0, 20.0, 30.0]), np.arange(3), np.arange(3))
    reach = 1.959963984540054 * math.sqrt(200) / 3
    assert found.at_most
    assert found.sampling_interval == pytest.approx((20 - reach, 20 + reach), rel=1e-3)


def test_one_cluster_has_no_question_interval() -> None:
    found = mean_intervals(np.array([10.0, 20.0]), np.array([0, 1]), np.zeros(2, dtype=np.intp))
    assert found.question_interval is None


def test_a_score_has_them() -> None:
    questions = [question("q1"), question("q2")]
    tokens = {"q1": (100, 300), "q2": (200, 400)}
    grades = [
        grade(name, index, "c", completion_tokens=n) for name, row in tokens.items() for index, n in enumerate(row)
    ]
    score = score_benchmark(questions, grades, 2)
    assert score.tokens is not None
    assert score.tokens.completion is not None
    found = score.tokens.completion.mean_intervals
    assert found is not None
    assert found.sampling_interval is not None
    assert found.sampling_interval.low < 250 < found.sampling_interval.high


def test_it_covers_also_where_only_right_samples_count() -> None:
    """Long-tailed tokens that differ by question, of right samples only, whose number changes from run to run."""
    rng = np.random.default_rng(2)
    level, chance = rng.lognormal(8, 0.7, 60), rng.uniform(0.2, 0.9, 60)
    truth = (level * chance).sum() / chance.sum()
    of, held = np.repeat(np.arange(60), 8), 0
    for _ in range(400):
        values = level[of] * rng.lognormal(-0.125, 0.5, len(of))
        values[rng.random(len(of)) > chance[of]] = np.nan
        interval = mean_intervals(values, of, np.arange(60)).sampling_interval
        assert interval is not None
        held += interval.low <= truth <= interval.high
    assert held >= 366
