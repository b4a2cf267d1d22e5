"""pass@k, pass^k and maj@k beside the values of scorio and the formulas of lm-evaluation-harness.

Restated from the facts of scorio (MIT, dedc415: the examples of `scorio/eval` and the large extremes of
`tests/eval/test_eval_regressions.py`) and of lm-evaluation-harness (MIT, 4e7e0d4: `lm_eval/tasks/cruxeval`,
`lm_eval/filters/selection.py`). What is counted otherwise on purpose stands in `ON_PURPOSE` with its reason.

For: harness.scoring.stats_draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from harness.scoring.stats_draws import VoteGroup, at_least_of_k, maj_at_k, pass_at_k

QUESTIONS = [(5, 3), (5, 4)]
"""(samples, right ones) of the two questions of scorio's examples: 0 1 1 0 1 and 1 1 0 1 1."""

LARGE = [(2000, 2000), (2000, 0)]


def majority(n: int, c: int, k: int) -> float:
    """maj@k where all wrong samples say the same."""
    return maj_at_k([VoteGroup(size, right) for size, right in ((c, c), (n - c, 0)) if size], 0, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """All of k samples right."""
    return at_least_of_k(n, c, k, k)


def mean(estimate: Callable[[int, int, int], float], questions: list[tuple[int, int]], k: int) -> float:
    return sum(estimate(n, c, k) for n, c in questions) / len(questions)


@pytest.mark.parametrize(
    ("estimate", "k", "theirs"),
    [
        (pass_at_k, 1, 0.7), (pass_at_k, 2, 0.95),
        (pass_hat_k, 1, 0.7), (pass_hat_k, 2, 0.45),
        (majority, 1, 0.7), (majority, 3, 0.85),
    ],
)  # fmt: skip
def test_the_examples_of_scorio_have_their_values(
    estimate: Callable[[int, int, int], float], k: int, theirs: float
) -> None:
    assert mean(estimate, QUESTIONS, k) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("estimate", [pass_at_k, pass_hat_k, majority])
def test_a_thousand_of_two_thousand_samples_stay_numbers(estimate: Callable[[int, int, int], float]) -> None:
    assert mean(estimate, LARGE, 1000) == 0.5


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_pass_at_k_is_the_product_of_lm_evaluation_harness(n: int) -> None:
    for c in range(n + 1):
        for k in range(1, n + 1):
            product = 1.0 if n - c < k else 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))
            assert pass_at_k(n, c, k) == pytest.approx(product, abs=1e-12)


ON_PURPOSE = [
    (
        "scorio: a majority is more than half, so a tie is lost; here tied answers share the win",
        (mean(majority, QUESTIONS, 2), 0.45), 0.70,
    ),
    (
        "lm-evaluation-harness: of tied answers the one that came first wins; the order of samples says nothing",
        (maj_at_k([VoteGroup(2, 2), VoteGroup(2, 0)], 0, 4), 1.0), 0.5,
    ),
    (
        "lm-evaluation-harness: replies without an answer vote together; here they do not vote",
        (maj_at_k([VoteGroup(2, 2)], 3, 5), 0.0), 1.0,
    ),
    (
        "lm-evaluation-harness: maj@8 of 64 samples is that of the first 8; here it is the mean over all choices of k",
        (maj_at_k([VoteGroup(2, 2), VoteGroup(1, 0)], 0, 1), 1.0), 2 / 3,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("why", "both", "ours"), ON_PURPOSE)
def test_what_is_counted_otherwise_is_so_on_purpose(why: str, both: tuple[float, float], ours: float) -> None:
    assert both[0] == pytest.approx(ours, abs=1e-12), why
    assert both[0] != both[1], why
