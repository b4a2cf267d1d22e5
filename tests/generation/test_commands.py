"""`harness run` and `harness status` as a user gives them: target, canary, endpoints from a file.

For: harness.commands.rounds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from harness.cli.plan import forecast_lines
from harness.core.number_text import Prices
from harness.core.records import Sample, Timing, Usage
from harness.generation.forecast import Forecast, forecast
from harness.runs import RunFolder, read_samples
from harness.testing import FakeServer, http, serving
from tests.faults.able import able, sums
from tests.generation.small_runs import expected_keys
from tests.runs import recorded
from tests.system.command import Result
from tests.system.command import harness as command

Command = Callable[..., Result]


@pytest.fixture
def harness(tmp_path: Path) -> Command:
    """The command, in a folder of its own."""
    return partial(command, tmp_path)


def run_words(data: Path, *more: str) -> list[str]:
    keys = ["--question-key", "problem", "--answer-key", "answer", "--id-key", "id"]
    return ["run", "--data", str(data), *keys, "--out", "run", *more]


def keys_on_disk(folder: Path, name: str = "sums") -> set[tuple[str, int]]:
    return {(s.question_id, s.sample_index) for s in read_samples(RunFolder(folder / "run").benchmark(name))}


def test_a_refused_key_names_no_other_variable(tmp_path: Path, harness: Command) -> None:
    data = sums(tmp_path, 1)
    with FakeServer(lambda _: [http(401, {"error": {"message": "Incorrect API key"}})]) as server:
        words = run_words(data, "--base-url", server.base_url, "--samples", "1")
        refused = harness(*words, "--api-key-env", "PROVIDER_KEY", extra={"PROVIDER_KEY": "sk-wrong"})
    assert refused.code == 2
    assert "the key was rejected: set its environment variable (see --api-key-env) to the correct key" in refused.err
    assert "(see --api-key-env)" in refused.err
    assert "OPENAI_API_KEY" not in refused.err
    assert "sk-wrong" not in refused.err


def test_a_run_ends_at_the_whole_round_that_reaches_the_target(tmp_path: Path, harness: Command) -> None:
    data = sums(tmp_path, 8)
    with FakeServer(able(0.9)) as server:
        words = run_words(data, "--base-url", server.base_url, "--samples", "400", "--concurrency", "8")
        done = harness(*words, "--target-error", "4")
        assert done.code == 0, done.err
        assert "target reached: the sampling error is" in done.err
        assert re.search(r"sums \d+\.\d% correct so far \([\d.]+ to [\d.]+\), 64 graded", done.err)  # of the first look
        stored = keys_on_disk(tmp_path)
        n_rounds = len(stored) // 8
        assert 8 <= n_rounds < 40  # the server is as fast as can be: no round is asked before the last was looked at
        assert stored == expected_keys(8, n_rounds)
        n_asked = len(server.requests)
        again = harness(*words, "--target-error", "4")
        assert (again.code, "target reached" in again.err) == (0, True)
        assert not [r for r in server.requests[n_asked:] if r.method == "POST"]
        refused = harness(*words, "--target-error", "4", "--temperature", "0.1")
        assert (refused.code, "temperature" in refused.err) == (3, True)
    (score,) = json.loads(harness("score", "run", "--json").out)
    low, high = score["accuracy"]["sampling"]
    assert (high - low) / 2 <= 1.96 * 0.04
    assert (score["n_missing"], score["rounds"], score["samples_per_question"]) == (0, n_rounds, n_rounds)


def test_a_target_that_the_samples_cannot_reach_is_missed_aloud(tmp_path: Path, harness: Command) -> None:
    data = sums(tmp_path, 8)
    with FakeServer(able(0.5)) as server:
        words = run_words(data, "--base-url", server.base_url, "--samples", "10")
        done = harness(*words, "--target-error", "1")
    assert done.code == 4
    assert re.search(
        r"target missed: the sampling error is \d\.\d\d points after 10 samples per question; the target is 1", done.err
    )
    assert "which would require --samples of about" in done.err
    assert "complete" not in done.err
    assert keys_on_disk(tmp_path) == expected_keys(8, 10)


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("--samples", "4"), "has 4 samples: set --samples 8 or more"),
        ((), "has 1 sample: set --samples 8 or more"),
        (("sums:7",), "has 7 samples: set sums:8 or more"),
    ],
)
def test_an_impossible_target_is_refused(tmp_path: Path, harness: Command, words: tuple[str, ...], advice: str) -> None:
    data = sums(tmp_path, 8)
    if words[:1] == ("sums:7",):
        columns = "{id: id, question: problem, answer: answer}"
        (tmp_path / "sums.yaml").write_text(
            f"title: Sums\nsource: {{kind: file, path: sums.jsonl}}\ncolumns: {columns}\n", encoding="utf-8"
        )
        given = ["run", "./sums.yaml:7", "--out", "run"]
    else:
        given = run_words(data, *words)
    with FakeServer(able(0.5)) as server:
        done = harness(*given, "--base-url", server.base_url, "--target-error", "30")
        assert (done.code, server.requests) == (2, [])
        expected = (
            "--target-error 30: estimating the sampling error requires at least 8 samples per question, but sums "
            f"{advice}"
        )
        assert expected in " ".join(done.err.split())
        enough = harness(*run_words(data, "--base-url", server.base_url, "--samples", "8", "--target-error", "30"))
    assert (enough.code, "target reached: the sampling error is" in enough.err) == (0, True)


def test_answers_that_are_all_right_are_not_exact_after_a_few_rounds(tmp_path: Path, harness: Command) -> None:
    data = sums(tmp_path, 8)
    with FakeServer(able(1.0)) as server:
        words = run_words(data, "--base-url", server.base_url, "--samples", "64")
        done = harness(*words, "--target-error", "2")
    assert done.code == 0, done.err
    assert "0.00 points" not in done.err
    assert len(keys_on_disk(tmp_path)) >= 8 * 8


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *((value, "--target-error") for value in ("0", "70", "small", "nan")),
        ("0.01", "--target-error 0.01: expected percentage points, not a fraction: enter 1 for 1 point"),
    ],
)
def test_a_target_must_be_a_number_of_points(tmp_path: Path, harness: Command, value: str, message: str) -> None:
    done = harness(*run_words(sums(tmp_path, 1), "--target-error", value))
    assert (done.code, message in done.err) == (2, True)


def test_replies_without_an_answer_stop_the_run_and_show_one(tmp_path: Path, harness: Command) -> None:
    mute = serving(lambda request: f"I would rather not say ({'abcdefgh'[request.json['seed'] % 8]}).")
    with FakeServer(mute) as server:
        words = run_words(sums(tmp_path, 10), "--base-url", server.base_url, "--samples", "10")
        stopped = harness(*words)
        assert stopped.code == 4
        assert "contain no answer that the grader can find" in stopped.err
        assert "I would rather not say" in stopped.err
        assert harness(*words, "--no-canary").code == 0


def test_a_run_over_endpoints_from_a_file_is_scored_by_endpoint(tmp_path: Path, harness: Command) -> None:
    with FakeServer(able(0.9)) as sound, FakeServer(able(0.1)) as broken:
        (tmp_path / "nodes").write_text(f"{sound.base_url}\n{broken.base_url} # new\n", encoding="utf-8")
        words = run_words(sums(tmp_path, 12), "--samples", "12", "--concurrency", "8")
        done = harness(*words, "--base-url", "nodes")
        assert done.code == 0, done.err
    endpoints = Counter(s.endpoint for s in read_samples(RunFolder(tmp_path / "run").benchmark("sums")))
    assert set(endpoints) == {sound.base_url, broken.base_url}
    scored = harness("score", "run", "--all")
    assert "By endpoint" in scored.out
    assert broken.base_url in scored.out
    for given in (["nods"], ["nods.txt"], ["nodes", sound.base_url], ["mine", sound.base_url]):
        refused = harness(*words, *(word for one in given for word in ("--base-url", one)))
        assert (refused.code, "expected an address" in refused.err) == (2, True), refused.err
    (tmp_path / "nodes").write_text(f"{sound.base_url}\n{sound.base_url}\n", encoding="utf-8")
    refused = harness(*words, "--base-url", "nodes")
    assert refused.code == 2
    assert "line 2" in refused.err


def test_one_of_two_servers_may_be_down_at_the_start(tmp_path: Path, harness: Command) -> None:
    data = sums(tmp_path, 3)
    with FakeServer(able(0.9)) as down:
        pass
    with FakeServer(able(0.9)) as up:
        words = run_words(data, "--base-url", down.base_url, "--samples", "2")
        done = harness(*words, "--base-url", up.base_url)
        assert done.code == 0, done.err
        assert f"no server answers at 127.0.0.1:{down.port}" in done.err
    assert keys_on_disk(tmp_path) == expected_keys(3, 2)
    nobody = harness(*words, "--base-url", up.base_url, "--out", "other")
    assert nobody.code == 2


# ---- the forecast by itself


def formerly(question: str, index: int, tokens: int | None, started: float, total: float) -> Sample:
    usage, timing = Usage(prompt_tokens=10, completion_tokens=tokens), Timing(started=started, total=total)
    return recorded.sample(question, index, "x", benchmark="sums", usage=usage, timing=timing, endpoint="http://a/v1")


def test_the_forecast_is_that_of_a_table_worked_by_hand() -> None:
    # q0: 100, 300 (mean 200, variance 20,000); q1: 400, 400.
    former = [
        formerly("q0", 0, 100, 0.0, 1.0),
        formerly("q0", 1, 300, 1.0, 3.0),
        formerly("q1", 0, 400, 0.0, 4.0),
        formerly("q1", 1, 400, 100.0, 4.0),  # a later session
    ]
    ahead = forecast(former, {"sums": (2, 8)}, concurrency=4, prices=Prices(prompt=1e6, completion=1e6))
    assert (ahead.n_samples, ahead.tokens) == (16, 8 * 200 + 8 * 400)
    assert ahead.tokens_error == pytest.approx((64 * 20_000 / 2 + 8 * 20_000) ** 0.5)
    assert ahead.prompt_tokens == 160
    assert ahead.usd == 160 + 4800
    # 12 s of streams for 1,200 tokens, in 8 s: 10 ms a token and stream; four streams, or no faster than the former.
    assert ahead.least_s == pytest.approx(4800 * 0.01 / 4)
    assert ahead.most_s == pytest.approx(4800 * 8 / 1200)


def test_the_longer_time_counts_client_work_between_replies_and_no_pause() -> None:
    """A server that answers at once: replies of 1 ms every 20 ms; then the same again in a session an hour later."""
    first = [formerly("q0", index, 10, 0.02 * index, 0.001) for index in range(51)]
    later = [formerly("q0", 51 + index, 10, 3600 + 0.02 * index, 0.001) for index in range(51)]
    for former in (first, first + later):
        ahead = forecast(former, {"sums": (1, 1020)}, 8, None)
        assert ahead.most_s == pytest.approx(1020 / 51 * 1.001)


def test_a_forecast_of_unknown_usage_counts_a_token_a_sample() -> None:
    unknown = [formerly("q0", index, None, 0.0, 1.0) for index in range(2)]
    assert forecast(unknown, {"sums": (1, 4)}, 4, None).tokens == 4
    assert forecast([], {"sums": (3, 4)}, 4, Prices(1, 1)).n_samples == 0


@pytest.mark.parametrize(
    ("least_s", "most_s", "concurrency", "expected"),
    [
        (240.0, 250.0, 4, "  time: about 4 min with 4 requests in flight"),
        (240.0, 300.0, 1, "  time: 4 min to 5 min with 1 request in flight (shorter if "),
    ],
)
def test_a_forecast_is_one_time_if_both_agree(least_s: float, most_s: float, concurrency: int, expected: str) -> None:
    ahead = Forecast(
        n_samples=9, tokens=90, tokens_error=1, prompt_tokens=None, least_s=least_s, most_s=most_s, usd=None
    )
    assert forecast_lines(ahead, concurrency)[1].startswith(expected)
