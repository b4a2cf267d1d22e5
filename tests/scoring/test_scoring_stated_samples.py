"""Stated numbers of samples that cannot be true, and those that can.

For: harness.scoring.stated_samples.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.scoring.published import PublishedScore, Source
from harness.scoring.stated_samples import doubt

SINGLE = 0.12
"""Variance of one sample of a question: 6.3 points over 30 questions, 0.8 with 64 samples of each."""


def row(value: float, samples: int | None, **more: Any) -> PublishedScore:
    fields: dict[str, Any] = {"n_questions": 30, "metric": "pass@1", "run_deviation": None, "settings": {}} | more
    return PublishedScore(
        model="m",
        benchmark="b",
        value=value,
        samples=samples,
        source=Source(title="", url="https://example.org"),
        **fields,
    )


@pytest.mark.parametrize(
    ("published", "reason"),
    [
        (row(0.444, 1), "44.4 % is no share of 30 samples"),
        (row(0.446, 8, n_questions=15), "44.6 % is no share of 120 samples"),
        (row(0.55, 64, standard_error=0.002), "would take about 1,000"),
        (row(0.55, 64, standard_error=0.3), "with the stated number of samples, no error can be as large as 30 points"),
        (row(0.55, 64, run_deviation=0.008), "are means of several samples or no independent runs; 6.3 would be usual"),
        (row(0.55, 64, run_deviation=0.2), "differ by more than samples, of which 9.1 points would be the most"),
    ],
)
def test_a_number_that_so_many_samples_cannot_give(published: PublishedScore, reason: str) -> None:
    found = doubt(published, SINGLE)
    n = published.samples
    assert found.startswith("1 sample a question is doubtful: " if n == 1 else f"{n} samples a question are doubtful: ")
    assert reason in found


@pytest.mark.parametrize(
    "published",
    [
        row(0.433, 1),
        row(0.43, 1, unit=0.01),
        row(0.666, 1),  # cut, not rounded
        row(0.442, 8, n_questions=15),
        row(0.55, 64, standard_error=0.008),  # same questions
        row(0.55, 64, standard_error=0.052),  # new questions
        row(0.55, 64, standard_error=0.091),  # coins
        row(0.55, 64, run_deviation=0.063),
        row(0.544, 3, run_deviation=0.02),  # three runs may lie close
        row(0.444, None),
        row(0.444, 1, metric="maj@1"),
        row(0.444, 1, n_questions=None),
        row(0.02, 8, standard_error=0.002),  # five right samples show no spread
    ],
)
def test_numbers_that_so_many_samples_can_give(published: PublishedScore) -> None:
    assert doubt(published, SINGLE) == ""


def test_without_a_spread_of_ones_own_no_error_is_too_small() -> None:
    assert doubt(row(0.55, 64, standard_error=0.002), None) == ""
