"""The tables of `make simulate` with a small budget: intervals cover, tests do not cry wolf, and the check can fail."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bench import simulate
from harness.deciding.difference_stats import reached_error
from harness.scoring import stats

pytestmark = pytest.mark.slow

REPEATS = 60
"""Repetitions of a cell: few, and yet each planted fault below is found."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sizes of sets, four of samples; three accuracies and models; quantiles of fewer draws."""
    monkeypatch.setattr(simulate, "DRAWS_PER_QUESTION", 50)
    monkeypatch.setattr(simulate, "QUESTIONS", (30, 198))
    monkeypatch.setattr(simulate, "ACCURACIES", (0.02, 0.3, 0.9))
    monkeypatch.setattr(simulate, "PLANNED_ACCURACIES", (0.01, 0.32, 0.95))
    monkeypatch.setattr(simulate, "SAMPLES", (1, 2, 4, 64))


DEAR = {
    "best-step", "copies", "late-levels", "late-steps", "majority", "margin-false", "over-k-questions",
    "planned-beside-run", "planned-beside-score", "published",
    "shared-replies", "smallest-planned", "stopping", "two-runs", "weighted",
}  # fmt: skip
"""Tables that take more than half a second each, and whose faults other tests find: `make test-wide` makes them."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.wide] if name in DEAR else []) for name in sorted(simulate.TABLES)]
)
@pytest.mark.usefixtures("small")
def test_every_cell_keeps_its_bound(name: str) -> None:
    table = simulate.TABLES[name](np.random.default_rng(7), REPEATS)
    broken = set(table.broken())
    if broken:  # by chance, too: one seed gives other numbers in another version of numpy
        broken &= set(simulate.TABLES[name](np.random.default_rng(8), REPEATS).broken())
    assert broken == set()
    assert any(re.match(r"\| (?:30|VAR-MATH|1 look |6 steps, )|.* runs \|", line) for line in simulate.lines(table))


def test_a_variance_of_few_samples_that_counts_for_all_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    trusting = stats._tosses_worth

    def old(
        mean: stats.Array,
        variance: stats.Array,
        total: stats.Array,
        tosses: stats.Array | float,
        least: stats.Array | float,
    ) -> stats.Array:
        return trusting(mean, variance, total, np.minimum(tosses, stats.SAMPLING_TOSSES), least)

    monkeypatch.setattr(stats, "_tosses_worth", old)
    table = simulate.half_rounds(np.random.default_rng(7), REPEATS)
    assert "30 × 1 to 2" in table.broken()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["planned-beside-run", "planned-beside-score"])
def test_a_plan_that_ignores_the_worse_models_variance_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "UNEQUAL_SIZES", ((64, 4), (4, 64)))
    monkeypatch.setattr(simulate.difference_stats, "growth", lambda mean, *_: np.zeros_like(mean))
    assert {"30 × 4 v 64", "30 × 64 v 4"} & set(simulate.TABLES[name](np.random.default_rng(7), REPEATS).broken())


def test_an_error_is_above_nothing_where_all_samples_are_right() -> None:
    assert reached_error(np.full(30, 4.0), 4) > 0.005


def test_the_reached_error_is_half_the_width_of_the_interval() -> None:
    correct = np.array([16.0, 8, 8, 0] * 10)
    error = reached_error(correct, 16)
    low, high = stats.sampling_limits(correct, np.full(40, 16.0))
    assert error == pytest.approx(float(high - low) / 2 / 1.959964, rel=1e-6)
