"""The number of samples that a difference needs to be found. Pure functions on numbers; fractions throughout."""

from __future__ import annotations

import math

from harness.scoring.distributions import power_factor


def samples_to_detect(
    variance: float, n_questions: int, difference: float, other_samples: int | None = None, n_tests: int = 1
) -> int | None:
    """Samples a question with which a true difference between two runs is found in 80 % of repetitions (at 5 %).

    variance: of one sample around its question's chance of being right (`differences.smoothed_variance`), the same in
    both runs; the error of the difference is then √(variance/Q · (1/n + 1/m)). other_samples: m, the samples a question
    of a run or publication that exists already; None = both runs get as many. n_tests: as in `power_factor`. Returns
    None where no number of samples is enough, because the other run's error alone is too large.
    """
    assert variance > 0
    assert difference > 0
    allowed = (difference / power_factor(n_tests)) ** 2
    per_sample = variance / n_questions
    if other_samples is None:
        return math.ceil(2 * per_sample / allowed)
    left = allowed - per_sample / other_samples
    return math.ceil(per_sample / left) if left > 0 else None
