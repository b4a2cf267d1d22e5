"""Speed in a score: what the stamps of the samples say, and silence where they tell of the client; work of the servers;
tokens of right and wrong samples, and the accuracy within a smaller budget.

For: harness.scoring.observed, harness.scoring.measures.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.core.records import Sample, Timing, Usage
from harness.presets.grading import GradingOptions
from harness.reports.formats import to_csv
from harness.reports.report import report
from harness.reports.tables import budget_table, speed_table
from harness.scoring.measures import mean_of_tokens
from harness.scoring.observed import Observed, Speed, Workload
from harness.scoring.observed import workload as of_rows
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score, score_benchmark
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
