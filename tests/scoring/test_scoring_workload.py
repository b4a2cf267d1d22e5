"""What samples asked of the servers: busy time, tokens, requests, and their course."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records import Sample, Timing, Usage
from harness.scoring import workload as module
from harness.scoring.observed import Observed
from harness.scoring.workload import N_SLICES, Workload
from harness.scoring.workload import workload as of_rows


def sample(number: int, started: float, total: float, tokens: int | None = 10, *, attempts: int = 1) -> Sample:
    return Sample(
        benchmark="b",
        question_id="q",
        sample_index=number,
        text="",
        reasoning=None,
        finish_reason="stop",
        usage=Usage(prompt_tokens=None if tokens is None else 7, completion_tokens=tokens, reasoning_tokens=3),
        timing=Timing(started=started, total=total),
        endpoint="e",
        attempts=attempts,
    )


def workload(*samples: Sample) -> Workload:
    observed = Observed()
    found = of_rows(observed, np.array([observed.observe(one) for one in samples]))
    assert found is not None
    return found


def test_time_without_a_request_in_flight_does_not_count() -> None:
    # 0–10 and 5–12 overlap; then nothing until 1000–1003.
    found = workload(sample(0, 0, 10), sample(1, 5, 7), sample(2, 1000, 3))
    assert found.busy_s == pytest.approx(15)
    assert (found.started, found.ended) == (0, 1003)
    assert found.slices[-1].finished == 1
    assert found.slices[-1].in_flight == pytest.approx(1)


def test_tokens_and_requests_are_summed_and_unstated_usage_is_counted_apart() -> None:
    found = workload(sample(0, 0, 1, 10, attempts=3), sample(1, 0, 1, None))
    assert (found.n_samples, found.n_stated, found.requests) == (2, 1, 4)
    assert (found.prompt_tokens, found.completion_tokens, found.reasoning_tokens) == (7, 10, 3)
    assert all(one.tokens_per_s is None for one in found.slices)


def test_latency_stands_in_the_slice_in_which_the_reply_ended() -> None:
    found = workload(sample(0, 0, 48), sample(1, 0, 24))
    assert found.slice_s == pytest.approx(1)
    assert (found.slices[23].finished, found.slices[23].latency_p50) == (1, 24)
    assert (found.slices[47].finished, found.slices[47].latency_p95) == (1, 48)
    assert found.slices[0].latency_p50 is None
    assert [round(one.in_flight, 6) for one in found.slices] == [2.0] * 24 + [1.0] * 24


def test_only_the_rows_asked_for_count() -> None:
    observed = Observed()
    rows = [observed.observe(one) for one in (sample(0, 0, 1), sample(1, 5, 9, attempts=4), sample(2, 0, 2))]
    found = of_rows(observed, np.array([rows[0], rows[2]]))
    assert found is not None
    assert (found.n_samples, found.busy_s, found.requests) == (2, 2, 2)
    assert of_rows(observed, np.array([], dtype=np.int64)) is None


def test_a_clock_that_ran_backwards_and_replies_in_no_time_are_survived() -> None:
    assert workload(sample(0, 5, 0)).slices == ()
    assert workload(sample(0, 5, -3), sample(1, 5, 2)).busy_s == pytest.approx(2)


ROWS = st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.01, 1e4), st.integers(0, 100_000)), min_size=1, max_size=30)


@given(ROWS)
def test_the_course_adds_up_to_the_whole(rows: list[tuple[float, float, int]]) -> None:
    found = workload(*(sample(number, *row) for number, row in enumerate(rows)))
    longest = max(total for _, total, _ in rows)
    assert longest <= found.busy_s * (1 + 1e-9)
    assert found.busy_s <= min(sum(total for _, total, _ in rows), found.ended - found.started) * (1 + 1e-9) + 1e-6
    assert len(found.slices) == N_SLICES
    assert sum(one.finished for one in found.slices) == len(rows)
    n_tokens = sum(one.tokens_per_s or 0.0 for one in found.slices) * found.slice_s
    assert n_tokens == pytest.approx(found.completion_tokens, rel=1e-6, abs=1e-6)
    in_flight = sum(one.in_flight for one in found.slices) * found.slice_s
    assert in_flight == pytest.approx(sum(total for _, total, _ in rows), rel=1e-6, abs=1e-6)


@given(rows=ROWS, chunk=st.integers(1, 5))
def test_the_course_is_the_same_in_pieces(rows: list[tuple[float, float, int]], chunk: int) -> None:
    samples = [sample(number, *row) for number, row in enumerate(rows)]
    whole = workload(*samples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", chunk)
        pieces = workload(*samples)
    for one, other in zip(whole.slices, pieces.slices, strict=True):
        assert (one.finished, one.latency_p50, one.latency_p95) == (
            other.finished,
            other.latency_p50,
            other.latency_p95,
        )
        flown, tokens = whole.slice_s * one.in_flight, whole.slice_s * (one.tokens_per_s or 0)
        assert flown == pytest.approx(whole.slice_s * other.in_flight, abs=1e-6)
        assert tokens == pytest.approx(whole.slice_s * (other.tokens_per_s or 0), abs=1e-6)
