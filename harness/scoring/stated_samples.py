"""Tests whether the number of samples that a published score states can be true. No I/O.

Of n samples of each of Q questions, at an accuracy p, a source can print only some numbers. v is the variance of one
sample of a question, the mean over our own samples of the same questions.

| it prints | what n samples can give |
| --- | --- |
| an accuracy | a multiple of 1/(Q n), rounded or cut at the last digit |
| an error of it, of whatever kind | from √(v/(Q n)), the sampling error, to 1.96 √(p(1−p)/min(Q, n)) |
| the deviation of one run | √(v/Q), but for chance, and at most √(p(1−p)/Q), but for chance |

The first test is that of Brown and Heathers (2017, Soc. Psychol. Personal. Sci. 8:363). The limits of an error are
widened by the factor `MARGIN`, since v is estimated and models differ. An error is not tested if fewer than
`MIN_VARYING` samples are right, or fewer are wrong, because a few samples then decide v. A contradiction is only a
warning ("doubt"): the source may have left out samples, or may state another kind of error.
"""

from __future__ import annotations

import math

from harness.core.nouns import are, count_noun
from harness.scoring.intervals import Z_95
from harness.scoring.published.value import PublishedScore

MARGIN = 1.5
"""A stated error is doubted only beyond this multiple of the limits, or below this fraction of them."""

MIN_VARYING = 30
"""Smallest number of right samples, and of wrong ones, of a source whose errors are looked at."""

_Z_RARE = 3.09
"""99.9 % quantile of the standard normal distribution: chance reaches a limit of a deviation in one of 1,000 cases."""


def doubt(published: PublishedScore, single: float | None) -> str:
    """A sentence on why the stated number of samples cannot be true; empty without a doubt.

    single: variance of one sample of a question, the mean over our own questions; None where it is not known.
    """
    n, n_questions = published.samples, published.n_questions
    if n is None or n_questions is None or published.metric != "pass@1":
        return ""
    reason = _of_accuracy(published, n * n_questions)
    if not reason and min(published.value, 1 - published.value) * n * n_questions >= MIN_VARYING:
        reason = _of_error(published, n, n_questions, single) or _of_deviation(published, n, n_questions, single)
    return f"{count_noun(n, 'sample')} a question {are(n)} doubtful: {reason}" if reason else ""


def _of_accuracy(published: PublishedScore, total: int) -> str:
    """Why `total` samples cannot give the printed accuracy; empty if they can."""
    nearest = round(published.value * total) / total
    # A source may round or cut its last digit; the rest is the error of a floating-point number.
    if abs(nearest - published.value) <= published.unit + 1e-6:
        return ""
    return f"{published.printed} % is no share of {total:,} samples"


def _of_error(published: PublishedScore, n: int, n_questions: int, single: float | None) -> str:
    """Why the stated error contradicts the stated samples; empty if it does not.

    n: samples a question that the source states. n_questions: questions of the benchmark. single: variance of one
    sample in our run; None if unknown.
    """
    error = published.standard_error
    if error is None:
        return ""
    if single and error < math.sqrt(single / (n_questions * n)) / MARGIN:
        needed = single / (n_questions * error**2) if error else math.inf
        words = f"about {needed:,.0f}" if needed < 1e6 else "more than a million"
        return f"by the spread of this run, an error of {_points(error)} points would take {words}"
    if error > MARGIN * Z_95 * math.sqrt(_largest(published, n * n_questions) / min(n, n_questions)):
        return f"with the stated number of samples, no error can be as large as {_points(error)} points"
    return ""


def _of_deviation(published: PublishedScore, n: int, n_questions: int, single: float | None) -> str:
    """Why the stated deviation between runs contradicts the stated samples; empty if it does not.

    n, n_questions, single: as in `_of_error`.
    """
    deviation = published.run_deviation
    if deviation is None or n < 2:
        return ""
    stated = f"runs that vary by {_points(deviation)} points"
    largest = math.sqrt(_largest(published, n * n_questions) / n_questions)
    if deviation > MARGIN * largest * _deviation_limit(n - 1, _Z_RARE):
        return f"{stated} differ by more than samples, of which {_points(largest)} points would be the most"
    if single:
        usual = math.sqrt(single / n_questions)
        if deviation < usual * _deviation_limit(n - 1, -_Z_RARE) / MARGIN:
            return f"{stated} are means of several samples or no independent runs; {_points(usual)} would be usual"
    return ""


def _largest(published: PublishedScore, total: int) -> float:
    """The largest variance of a sample at this accuracy; one right and one wrong sample are added, so it is never 0."""
    accuracy = (published.value * total + 1) / (total + 2)
    return accuracy * (1 - accuracy)


def _deviation_limit(freedom: int, z: float) -> float:
    """Limit of an observed standard deviation over the true one: Wilson and Hilferty's √(χ²/freedom)."""
    part = 2 / (9 * freedom)
    return math.pow(max(0.0, 1 - part + z * math.sqrt(part)), 1.5)


def _points(share: float) -> str:
    return f"{100 * share:.2g}"
