"""What a run says of its load: simulated runs whose rates and times are known, and counts by brute force.

For: harness.scoring.load.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from harness.core.records import Sample, SampleStep, Seam, Timing, Usage
from harness.scoring.load import LoadPoint, load_point

PREFILL_S, USER_SPEED, MEAN_TOKENS = 0.5, 40.0, 400


def sample(number: int, began: float, total: float, tokens: int | None, **more: object) -> Sample:
    timing = Timing(started=began, first_token=PREFILL_S, last_token=total, total=total)
    made: dict[str, Any] = {"text": "x", "reasoning": None, "finish_reason": "stop", "endpoint": "http://a/v1"}
    made |= {"usage": Usage(completion_tokens=tokens), "timing": timing}
    return Sample(benchmark="b", question_id=f"q{number}", sample_index=0, **made | more)


def simulated(seed: int, n: int, concurrency: int) -> list[Sample]:
    """A run with so many requests in flight, on a server whose speed varies with the second and with the request."""
    random = np.random.default_rng(seed)
    shared = random.normal(0, 0.1, 100_000)
    free, samples = [random.uniform(0, 0.2) for _ in range(concurrency)], list[Sample]()
    heapq.heapify(free)
    for number in range(n):
        began = heapq.heappop(free)
        tokens = 2 + int(random.exponential(MEAN_TOKENS - 2))
        speed = USER_SPEED * np.exp(shared[int(began)] + random.normal(0, 0.1))
        total = PREFILL_S + (tokens - 1) / speed
        samples.append(sample(number, began, float(total), tokens))
        heapq.heappush(free, began + total + random.uniform(0, 0.002))
    return samples


def point_of(samples: Sequence[Sample], concurrency: int) -> LoadPoint:
    point = load_point(samples, concurrency)
    assert point is not None
    return point


@pytest.mark.parametrize("concurrency", [1, 4, 20])
def test_a_load_is_what_counting_each_token_and_request_at_full_load_gives(concurrency: int) -> None:
    samples = simulated(5, 15 * concurrency, concurrency)
    point = point_of(samples[::-1], concurrency)
    ends = [(one.timing.started, one.timing.started + one.timing.total) for one in samples]
    times = sorted(itertools.chain(*ends))
    in_flight = [sum(began <= time < end for began, end in ends) for time in times]
    full = [pair for pair, n in zip(itertools.pairwise(times), in_flight[:-1], strict=True) if n >= 0.9 * concurrency]
    assert point.seconds == pytest.approx(sum(end - start for start, end in full))
    began = [one for one in samples if any(start <= one.timing.started < end for start, end in full)]
    assert 0.7 * len(samples) < point.requests == len(began) <= len(samples)
    arrivals = np.concatenate(
        [
            one.timing.started + np.linspace(PREFILL_S, one.timing.total, one.usage.completion_tokens or 0)
            for one in samples
        ]
    )
    n_arrived = sum(int(((arrivals >= start) & (arrivals < end)).sum()) for start, end in full)
    assert point.tokens_per_s.value == pytest.approx(n_arrived / point.seconds, rel=0.01)
    assert point.user_tokens_per_s is not None
    speeds = [((one.usage.completion_tokens or 0) - 1) / (one.timing.total - PREFILL_S) for one in began]
    assert point.user_tokens_per_s.value == np.quantile(speeds, 0.5, method="inverted_cdf")
    for stated, values in (
        (point.total, [one.timing.total for one in began]),
        (point.time_per_token, [1 / v for v in speeds]),
    ):
        assert stated is not None
        expected = np.quantile(values, [0.5, 0.9, 0.99], method="inverted_cdf")
        assert [stated.p50, stated.p90, stated.p99] == pytest.approx(expected)


def test_intervals_cover_the_true_rates() -> None:
    covered = np.zeros(2)
    spread = np.exp(0.1**2)  # The mean of 1 / speed, of two normal logarithms with deviation 0.1.
    truth = 8 * MEAN_TOKENS / (PREFILL_S + (MEAN_TOKENS - 1) / USER_SPEED * spread)
    for seed in range(400):
        point = point_of(simulated(seed, 400, 8), 8)
        for number, (rate, true) in enumerate(((point.tokens_per_s, truth), (point.user_tokens_per_s, USER_SPEED))):
            assert rate is not None
            assert rate.low is not None
            assert rate.high is not None
            covered[number] += rate.low <= true <= rate.high
    assert [0.93 <= share <= 0.97 for share in covered / 400] == [True, True], covered


def test_a_load_that_was_never_reached_or_states_no_tokens_is_unknown() -> None:
    samples = simulated(1, 60, 8)
    assert load_point(samples, 8) is not None
    assert load_point(samples, 9) is None
    assert load_point([], 1) is None
    assert load_point([replace(one, usage=Usage()) for one in samples], 8) is None
    continued = replace(samples[0], salvaged_at=(Seam(tokens=1, text=1, reasoning=0, exact=True),))
    with_tool = replace(samples[0], steps=(SampleStep(finish_reason="tool_calls"),))
    assert load_point([continued], 1) is load_point([with_tool], 1) is None


def test_a_reply_in_one_piece_and_hidden_reasoning_have_no_false_speed() -> None:
    """Hidden reasoning is over before the first token that is shown."""
    samples = simulated(1, 200, 4)
    whole = [replace(one, timing=replace(one.timing, first_token=None, last_token=None)) for one in samples]
    hidden = [replace(one, usage=replace(one.usage, reasoning_tokens=one.usage.completion_tokens)) for one in samples]
    summary = [replace(one, reasoning="So") for one in hidden]
    plain = point_of(samples, 4)
    for kind in (whole, hidden, summary):
        point = point_of(kind, 4)
        assert (point.user_tokens_per_s, point.time_per_token) == (None, None)
        assert point.tokens_per_s.value == pytest.approx(plain.tokens_per_s.value, rel=0.02)
        assert (point.first_token is None) == (kind is whole)
    # Wrong twin: half of the tokens were streamed, at half of the speed.
    half = [
        replace(one, usage=replace(one.usage, reasoning_tokens=(one.usage.completion_tokens or 0) // 2))
        for one in samples
    ]
    shown = point_of(half, 4).user_tokens_per_s
    assert shown is not None
    assert plain.user_tokens_per_s is not None
    assert shown.value == pytest.approx(plain.user_tokens_per_s.value / 2, rel=0.03)
