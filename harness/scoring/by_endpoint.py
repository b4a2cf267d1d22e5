"""The samples of a run by endpoint: accuracy, cut and missing answers, speed.

The scheduler chooses an endpoint by how long the samples of a question took so far, and short samples tend to be right.
So sound endpoints differ by some points, too; the columns say what was seen, and test nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from harness.core.records import Grade
from harness.scoring.observed import Observed, Rows
from harness.scoring.stats import Estimate, sampling_limits


class EndpointScore(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of one endpoint in a benchmark. Shares are fractions of its n_samples.

    expected_accuracy: the share if the endpoint did on each question as all endpoints together do.
    The interval of the accuracy is that of the same questions, each asked as often. Endpoints get different questions,
    so their intervals do not compare them. tokens_per_s: of one stream, over samples with stated tokens.
    """

    n_samples: int
    accuracy: Estimate
    expected_accuracy: float
    truncated: float
    no_answer: float
    tokens_per_s: float | None


def scores(observed: Observed, rows: Rows, grades: Sequence[Grade]) -> dict[str, EndpointScore]:
    """By URL, sorted, the score of each endpoint; empty when all samples come from one endpoint.

    rows: the samples of the `grades`.
    """
    if len(observed.endpoints) < 2:
        return {}
    numbers: dict[str, int] = {}
    question = np.array([numbers.setdefault(grade.question_id, len(numbers)) for grade in grades], dtype=np.int64)
    verdicts = np.array([grade.verdict for grade in grades])
    right = np.array([grade.counted for grade in grades])
    truncated = np.array([bool(grade.truncated) for grade in grades])
    endpoint, of_all = observed.endpoint(rows), np.bincount(question)
    rate = np.bincount(question, right, len(of_all)) / of_all
    scored = {}
    for name in sorted(observed.endpoints):
        mine = endpoint == observed.endpoints[name]
        if not (n := int(mine.sum())):
            continue
        correct = np.bincount(question[mine], right[mine], len(of_all)).astype(float)
        counts = np.bincount(question[mine], minlength=len(of_all)).astype(float)
        correct, counts = correct[counts > 0], counts[counts > 0]
        scored[name] = EndpointScore(
            n_samples=n,
            accuracy=Estimate(
                value=float(right[mine].sum()) / n,
                sampling=sampling_limits(correct, counts, counts / n).interval(),
                at_most=bool((counts == 1).all()),
            ),
            expected_accuracy=math.fsum(rate[question[mine]]) / n,
            truncated=int(truncated[mine].sum()) / n,
            no_answer=int((verdicts[mine] == "no_answer").sum()) / n,
            tokens_per_s=_tokens_per_s(observed, rows[mine]),
        )
    return scored


def _tokens_per_s(observed: Observed, rows: Rows) -> float | None:
    """The speed of one stream over the samples with stated tokens and a time; None without any."""
    tokens, seconds = np.nan_to_num(observed.columns["completion_tokens"].of(rows)), observed.columns["total"].of(rows)
    timed = (tokens != 0) & (seconds > 0)
    in_all = math.fsum(seconds[timed])
    return int(tokens[timed].sum()) / in_all if in_all else None
