"""What samples asked of the servers: busy time, tokens and requests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records import Sample, Timing, Usage
from harness.scoring.observed import Observed
from harness.scoring.workload import Workload
from harness.scoring.workload import workload as of_rows
from tests.runs import recorded


def sample(number: int, started: float, total: float, tokens: int | None = 10, *, attempts: int = 1) -> Sample:
    usage = Usage(prompt_tokens=None if tokens is None else 7, completion_tokens=tokens, reasoning_tokens=3)
    timing = Timing(started=started, total=total)
    return recorded.sample("q", number, "", usage=usage, timing=timing, attempts=attempts)


def workload(*samples: Sample) -> Workload:
    observed = Observed()
    found = of_rows(observed, np.array([observed.observe(one) for one in samples]))
    assert found is not None
    return found


def test_time_without_a_request_in_flight_does_not_count_and_unstated_usage_is_counted_apart() -> None:
    # 0–10 and 5–12 overlap; then nothing until 1000–1003. A clock may run backwards, a reply take no time.
    found = workload(sample(0, 0, 10, attempts=3), sample(1, 5, 7, None), sample(2, 1000, 3), sample(3, 1, -3))
    assert found.busy_s == pytest.approx(15)
    assert (found.started, found.ended) == (0, 1003)
    assert (found.n_samples, found.n_stated, found.requests) == (4, 3, 6)
    assert (found.prompt_tokens, found.completion_tokens, found.reasoning_tokens) == (21, 30, 9)
    assert workload(sample(0, 5, 0)).busy_s == 0


def test_only_the_rows_asked_for_count() -> None:
    observed = Observed()
    rows = [observed.observe(one) for one in (sample(0, 0, 1), sample(1, 5, 9, attempts=4), sample(2, 0, 2))]
    found = of_rows(observed, np.array([rows[0], rows[2]]))
    assert found is not None
    assert (found.n_samples, found.busy_s, found.requests) == (2, 2, 2)
    assert of_rows(observed, np.array([], dtype=np.int64)) is None


ROWS = st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.01, 1e4), st.integers(0, 100_000)), min_size=1, max_size=30)


@given(ROWS)
def test_busy_time_is_at_least_the_longest_reply_and_at_most_all_of_them(rows: list[tuple[float, float, int]]) -> None:
    found = workload(*(sample(number, *row) for number, row in enumerate(rows)))
    longest = max(total for _, total, _ in rows)
    assert longest <= found.busy_s * (1 + 1e-9)
    assert found.busy_s <= min(sum(total for _, total, _ in rows), found.ended - found.started) * (1 + 1e-9) + 1e-6
