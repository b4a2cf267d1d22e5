"""Speed in a score: what the stamps of the samples say, and silence where they tell of the client; work of the servers;
tokens of right and wrong samples, and the accuracy within a smaller budget; load: simulated runs whose rates and times
are known, and counts by brute force.

For: harness.scoring.observed, harness.scoring.measures, harness.scoring.load.
"""

from __future__ import annotations

import csv
import heapq
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from harness.core.records import Sample, SampleStep, Seam, Timing, Usage
from harness.presets.grading import GradingOptions
from harness.reports.formats import to_csv
from harness.reports.report import report
from harness.reports.tables import budget_table, speed_table
from harness.scoring.benchmark_score import score_benchmark
from harness.scoring.client_metrics import Speed, Workload
from harness.scoring.client_metrics import workload as of_rows
from harness.scoring.load import LoadPoint, load_point
from harness.scoring.measures import mean_of_tokens
from harness.scoring.observed import Observed
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score
from harness.scoring.stats import t_factor
from harness.viewer.rows import facts_of
from tests.runs import recorded
from tests.scoring.graded import grade, graded, question
from tests.scoring.test_scoring_observed import A, sample, stored


def timed(index: int, timing: Timing, tokens: int | None = 101) -> Sample:
    """A right answer that arrived so."""
    return msgspec.structs.replace(sample("q0", index, A), timing=timing, usage=Usage(completion_tokens=tokens))


def scored(folder: Path, *samples: Sample) -> Score:
    (score,) = score_run(stored(folder, [question("q0")], list(samples), len(samples)), GradingOptions(workers=1))
    return score


def streamed(first: float, *, gap: float = 0.02, lag: float | None = 0.001) -> Timing:
    """100 tokens after the first, one a `gap`."""
    return Timing(
        started=0.0,
        first_token=first,
        last_token=first + 100 * gap,
        total=first + 100 * gap,
        gap_p50=gap,
        gap_p99=2 * gap,
        events=101,
        clock="kernel",
        lag=lag,
    )


def test_first_tokens_gaps_and_rates_are_quantiles_over_samples(tmp_path: Path) -> None:
    score = scored(tmp_path, *(timed(i, streamed(0.1 * (i + 1))) for i in range(5)))
    assert score.speed == Speed(
        n_samples=5,
        first_token_p50=pytest.approx(0.3),
        first_token_p99=0.5,
        gap_p50=0.02,
        gap_p99=0.04,
        tokens_per_s=pytest.approx(50.0),
        lag=0.001,
        kernel_stamps=1.0,
    )
    table = speed_table([("run", score)])
    assert table is not None
    assert table.rows == (("run", "demo", "300", "500", "20", "40", "50.0", "1"),)
    assert not table.notes


@pytest.mark.parametrize(("lag", "shown"), [(0.005, True), (0.0051, False), (None, False)])
def test_gaps_below_four_times_the_lag_are_withheld(tmp_path: Path, lag: float | None, shown: bool) -> None:
    score = scored(tmp_path, timed(0, streamed(0.1, lag=lag)))
    assert score.speed is not None
    assert (score.speed.gap_p50, score.speed.gap_p99) == ((0.02, 0.04) if shown else (None, None))
    assert score.speed.tokens_per_s == pytest.approx(50.0)
    table = speed_table([("run", score)])
    assert table is not None
    assert table.rows[0][4:6] == (("20", "40") if shown else ("*", "*"))
    assert ("client's lag" in " ".join(table.notes)) is not shown


def test_replies_in_one_piece_have_no_speed(tmp_path: Path) -> None:
    score = scored(tmp_path, timed(0, Timing(started=0.0, total=2.0)))
    assert score.speed is None
    assert speed_table([("run", score)]) is None
    assert "Speed" not in report([stored(tmp_path / "other", [question("q0")], [], 1)]).markdown()


def test_a_server_that_states_no_tokens_has_no_rate(tmp_path: Path) -> None:
    score = scored(tmp_path, timed(0, streamed(0.1), tokens=None))
    assert score.speed is not None
    assert (score.speed.tokens_per_s, score.speed.gap_p50) == (None, 0.02)


@pytest.mark.parametrize(
    ("reasoning", "rate", "hidden"),
    [(None, 50.0, 1.0), ("it was summed up …", None, 1.0), ("so " * 1667, 2550.0, None), ("é" * 2500, 2550.0, None)],
)
def test_thinking_that_was_not_sent_does_not_count_as_speed(
    tmp_path: Path, reasoning: str | None, rate: float | None, hidden: float | None
) -> None:
    usage = Usage(completion_tokens=5101, reasoning_tokens=5000)
    one = msgspec.structs.replace(timed(0, streamed(60.0)), usage=usage, reasoning=reasoning)
    score = scored(tmp_path, one)
    assert score.speed is not None
    assert (score.speed.tokens_per_s, score.speed.hidden) == (rate and pytest.approx(rate), hidden)
    table = speed_table([("run", score)])
    assert table is not None
    assert ("visible tokens only" in " ".join(table.notes)) is (hidden is not None)
    first_token = next(value for name, value in facts_of(one) if name == "first token")
    assert first_token == ("60.00 s" if hidden is None else "60.00 s (visible tokens only)")


def test_every_format_holds_speed_budgets_and_tokens(tmp_path: Path) -> None:
    run = stored(tmp_path, [question("q0")], [timed(i, streamed(0.1), 200 * (i + 1)) for i in range(3)], 3)
    (score,) = score_run(run, GradingOptions(workers=1))
    of_run = report([run])
    for document in (of_run.markdown(), of_run.html()):
        for title in ("Latency of one stream", "Accuracy within a token budget", "Tokens per sample"):
            assert title in document
    (row,) = csv.DictReader(to_csv([("run", "m", score)]).splitlines())
    assert (row["speed_first_token_p50"], row["speed_lag"]) == ("0.1", "0.001")
    assert float(row["within_256_accuracy"]) == pytest.approx(1 / 3)
    assert (row["tokens_completion_mean"], row["tokens_completion_p50"]) == ("400.0", "400")


def worked(number: int, started: float, total: float, tokens: int | None = 10, *, attempts: int = 1) -> Sample:
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
    found = workload(worked(0, 0, 10, attempts=3), worked(1, 5, 7, None), worked(2, 1000, 3), worked(3, 1, -3))
    assert found.busy_s == pytest.approx(15)
    assert (found.started, found.ended) == (0, 1003)
    assert (found.n_samples, found.n_stated, found.requests) == (4, 3, 6)
    assert (found.prompt_tokens, found.completion_tokens, found.reasoning_tokens) == (21, 30, 9)
    assert workload(worked(0, 5, 0)).busy_s == 0


def test_only_the_rows_asked_for_count() -> None:
    observed = Observed()
    rows = [observed.observe(one) for one in (worked(0, 0, 1), worked(1, 5, 9, attempts=4), worked(2, 0, 2))]
    found = of_rows(observed, np.array([rows[0], rows[2]]))
    assert found is not None
    assert (found.n_samples, found.busy_s, found.requests) == (2, 2, 2)
    assert of_rows(observed, np.array([], dtype=np.int64)) is None


def of_lengths(*lengths: tuple[str, int | None]) -> Score:
    """One question; a letter and the tokens of each sample."""
    questions, _ = graded(q1="")
    grades = [grade("q1", i, letter, completion_tokens=n) for i, (letter, n) in enumerate(lengths)]
    return score_benchmark(questions, grades, len(lengths))


def test_a_longer_reply_counts_as_wrong_within_a_budget() -> None:
    score = of_lengths(("c", 200), ("c", 256), ("c", 257), ("w", 100), ("c", 900))
    found = {tokens: (one.accuracy.value, one.cut) for tokens, one in score.budgets.items()}
    assert found == {256: (0.4, 0.4), 512: (pytest.approx(0.6), 0.2), 1024: (pytest.approx(0.8), 0.0)}
    assert score.budgets[1024].accuracy == score.accuracy
    shown = budget_table([("run", score)])
    assert (shown.columns[-1], [row[-1] for row in shown.rows]) == ("longer %", ["40.0", "20.0", "0.0"])


def test_unknown_tokens_give_no_budgets() -> None:
    assert of_lengths(("c", 200), ("c", None)).budgets == {}


def test_hand_worked() -> None:
    """Two questions with 10, 20 and 30, 60 tokens, twice each: mean 30, variances within 100/3 and 300."""
    values, of = np.array([10.0, 20.0, 10.0, 20.0, 30.0, 60.0, 30.0, 60.0]), np.repeat([0, 1], 4)
    found = mean_of_tokens(values, of, np.arange(2))
    # Σd² = 1000, Σd⁴ = 205,000, f = 6: K = 3.66 equal squares, 9.4 degrees of freedom, at most 6.
    factor = math.exp(t_factor(6) * math.sqrt(4 * 100 / 3 + 4 * 300) / 8 / 30)
    assert found.sampling == pytest.approx((30 / factor, 30 * factor))
    assert found.question is None  # two questions leave one degree of freedom
    assert not found.at_most


def test_one_sample_each_is_at_most() -> None:
    found = mean_of_tokens(np.array([10.0, 20.0, 30.0]), np.arange(3), np.arange(3))
    factor = math.exp(t_factor(2) * math.sqrt(200) / 3 / 20)
    assert found.at_most
    assert found.sampling == pytest.approx((20 / factor, 20 * factor))
    factor = math.exp(t_factor(2) * math.sqrt(200 * 3 / 2) / 3 / 20)
    assert found.question == pytest.approx((20 / factor, 20 * factor))


def test_a_long_length_leaves_few_degrees_of_freedom() -> None:
    """One of eight lengths makes nearly the whole variance: K = 1.1 of 7, 1.4 degrees of freedom, at least 2."""
    values = np.array([10.0, 11.0, 10.0, 11.0, 10.0, 11.0, 10.0, 200.0])
    found = mean_of_tokens(values, np.arange(8), np.arange(8)).sampling
    mean = values.mean()
    factor = math.exp(t_factor(2) * math.sqrt(((values - mean) ** 2).sum()) / 8 / mean)
    assert found == pytest.approx((mean / factor, mean * factor))


def test_one_length_says_nothing_of_others() -> None:
    found = mean_of_tokens(np.array([10.0, math.nan, math.nan]), np.arange(3), np.arange(3))
    assert found.sampling is None


def test_one_cluster_has_no_question_interval() -> None:
    found = mean_of_tokens(np.array([10.0, 20.0]), np.array([0, 1]), np.zeros(2, dtype=np.intp))
    assert found.question is None


PREFILL_S, USER_SPEED, MEAN_TOKENS = 0.5, 40.0, 400


def sample_at(number: int, began: float, total: float, tokens: int | None, **more: object) -> Sample:
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
        samples.append(sample_at(number, began, float(total), tokens))
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
