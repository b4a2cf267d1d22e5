"""Lines of a gate on metrics: what each finds, false alarms over all of them, and what is unknown.

For: harness.gates.metrics, harness.gates.policy, harness.gates.evaluation, harness.gates.samples.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace as Named
from typing import Any, cast

import msgspec
import numpy as np
import pytest
import yaml

from harness.core.records import CallSign
from harness.gates.decision import Checked
from harness.gates.evaluation import learn_from
from harness.gates.metrics import RISING, MetricCheck, check_lines
from harness.gates.policy import Policy
from harness.gates.samples import check_samples
from harness.reports.inputs import ScoredBenchmark, ScoredRun
from harness.scoring.goodput import Goodput
from harness.scoring.load import Rate
from harness.scoring.stats import wilson
from harness.scoring.tally import tally
from harness.testing import FakeServer, Pause, Said, serving
from tests.budget import examples
from tests.faults.able import able, sums
from tests.scoring.graded import grade, question
from tests.system.command import harness

LINES = {
    "acceptance_length": {"baseline": "history", "loss": "5%"},
    "tokens_per_second": {"baseline": "history", "loss": "5%"},
    "first_token_p99": {"baseline": "history", "loss": "50%"},
    "reply_length": {"baseline": "history", "loss": "10%"},
}


def policy_of(metrics: Any, **more: Any) -> dict[str, Any]:
    watched = {"floor": 85, "loss": 15, "max_samples": 2, "metrics": metrics} | more
    run = {"base_url": "http://127.0.0.1:1", "data": "sums.jsonl", "id_key": "id"}
    return {"name": "t", "run": run, "benchmarks": {"sums": watched}, "history": "hist"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scored run, `base`, that passes its floor."""
    folder = tmp_path_factory.mktemp("gate")
    sums(folder, 40)
    with FakeServer(able(1.0)) as server:
        words = f"--data sums.jsonl --id-key id --base-url {server.base_url} --samples 2 --out base".split()
        assert harness(folder, "run", *words).code == 0
    assert harness(folder, "score", "base").code == 0
    return folder


ENGINE: dict[str, Any] = {
    **dict.fromkeys(("tokens", "tokens_per_s", "acceptance_rate", "cache_hit_rate", "gap_s", "preempted"), 1.0),
    "first_token_s": 0.2,
    "running": 9.0,
    "engine": "vllm",
    "client_tokens": 1,
    "own": True,
    "client_tokens_per_s": 1000.0,
    "acceptance_length": 3.0,
    "draft_share": 0.9,
    "waiting": 0.0,
    "waiting_share": 0.0,
    "kv_cache": 0.5,
    "concurrency": 64,
}


def night(base: Path, name: str, **metrics: Any) -> str:
    """A run like `base`, whose engine had these metrics. Returns its name."""
    shutil.copytree(base / "base", base / name)
    scores = base / name / "sums" / "scores.json"
    scores.write_text(json.dumps(json.loads(scores.read_text()) | {"engine": ENGINE | metrics}))
    return name


def decision(base: Path, policy: dict[str, Any], run: str) -> tuple[int, dict[str, MetricCheck]]:
    """The exit code of the gate on a run that exists, and its lines by metric."""
    (base / "gate.yaml").write_text(yaml.safe_dump(policy))
    done = harness(base, "gate", "gate.yaml", run, "--json")
    return done.code, {each["metric"]: Named(**each) for each in json.loads(done.out or "{}").get("metrics", [])}  # type: ignore[misc]


def test_a_limit_fails_beyond_the_spread_of_runs_only_and_unknown_is_open(base: Path) -> None:
    def state(line: dict[str, Any], metric: str = "acceptance_length", **engine: Any) -> tuple[int, str, str]:
        run = night(base, f"limit-{len(list(base.iterdir()))}", **engine)
        code, lines = decision(base, policy_of({metric: line}) | {"history": f"of-{run}"}, run)
        return code, lines[metric].state, lines[metric].why

    assert state({"floor": 2.9})[:2] == (0, "pass")
    assert state({"floor": 3.1})[:2] == (4, "undecided")  # within what runs differ by
    assert state({"floor": 4.0})[:2] == (1, "fail")
    assert state({"floor": 4.0, "tier": "advisory"})[:2] == (0, "fail")
    assert state({"baseline": "history", "loss": "5%"})[:2] == (0, "undecided")  # a first night waits
    assert harness(base, "gate", "gate.yaml", min(base.glob("limit-*")).name, "--out", "waits").code == 0
    assert 'errors="0"' in (base / "waits" / "gate.xml").read_text()
    assert state({"ceiling": 800.0}, "tokens_per_second")[:2] == (1, "fail")
    assert state({"floor": 2.9}, own=False)[:2] == (4, "undecided")
    code, word, why = state({"floor": 2.9}, acceptance_length=None, remarks=["the server was restarted"])
    assert (code, word, why) == (4, "undecided", "unknown: the server was restarted")
    assert "90.0% of the steps used a draft" in state({"floor": 2.9})[2]
    assert state({"floor": 1100.0}, "tokens_per_second", concurrency=2)[:2] == (4, "undecided")
    assert "estimating it requires 5 similar runs (found 0)" in state({"floor": 90}, "cache_hit_rate")[2]
    assert state({"baseline": "base", "loss": "30%"})[2].startswith(
        "not compared because these differ: requests in flight"
    )
    with_engine = night(base, "with-engine")
    assert state({"baseline": with_engine, "loss": "30%"})[:2] == (0, "pass")
    assert state({"baseline": with_engine, "loss": "1%"})[:2] == (4, "undecided")
    assert state({"baseline": with_engine, "loss": "30%"}, acceptance_length=2.0)[:2] == (1, "fail")
    assert state({"baseline": with_engine, "loss": "30%"}, concurrency=8)[1] == "undecided"
    policy = policy_of({"acceptance_length": {"floor": 4.0}}) | {"run": {}}
    # Of a benchmark there are no samples.
    fast = {"tokens_per_second": {"floor": 1.0}}
    policy["benchmarks"]["demo"] = {"floor": 85, "loss": 15, "tier": "supporting", "figures": fast}
    code, lines = decision(base, policy, with_engine)
    assert (code, *(line.state for _, line in sorted(lines.items()))) == (1, "fail", "undecided")
    assert "estimating it requires 5 similar runs" in state({"baseline": "history", "loss": "30%"})[2]


@pytest.mark.parametrize(
    ("metric", "line", "words"),
    [
        ("schema", {"floor": 0.98}, "metrics.schema: a floor is given in points: write 98 for 98%"),
        ("schema", {"ceiling": 98}, "requires a floor in points (at most 100), or a run as its baseline"),
        ("schema", {"floor": 150}, "requires a floor in points (at most 100), or a run as its baseline"),
        *(
            ("schema", {"baseline": word, "loss": "3%"}, "requires a floor in points (at most 100), or a run")
            for word in ("history", "published")
        ),
        ("calls", {"floor": 10, "loss": 11}, "a loss of 11.0 points exceeds the floor of 10"),
        ("cache_hit_rate", {"floor": 0.6}, "metrics.cache_hit_rate: is in percent: write 60 for 0.6"),
        ("cache_hit_rate", {"floor": 101}, "metrics.cache_hit_rate: is at most 100"),
        ("cache_hit_rate", {"baseline": 0.98, "loss": "3%"}, "is in percent"),
        ("acceptance_length", {"floor": 0.7}, "is at least 1"),
        ("first_token_p99", {"floor": 2}, "a lower latency is better, so set a ceiling"),
        ("tokens_per_second", {"baseline": "history", "loss": 5}, "a baseline requires a maximum loss, such as `5%`"),
    ]
    + [
        ("acceptance_length", line, words)
        for line, words in (
            ({}, "expected a floor, a ceiling or a baseline"),
            ({"floor": 3, "ceiling": 4}, "expected a floor, a ceiling or a baseline"),
            ({"floor": 3, "loss": "3%"}, "a floor or ceiling must not have one"),
            ({"baseline": "history"}, "a baseline requires a maximum loss"),
            ({"baseline": "nowhere", "loss": "3%"}, "nowhere"),
            ({"floor": -1}, "greater than 0"),
            ({"baseline": 0, "loss": "3%"}, "greater than 0"),
            ({"baseline": 800}, "a baseline requires a maximum loss"),
            ({"floor": math.inf}, "finite"),
            ({"baseline": "history", "loss": "99.99999999999999999%"}, "a baseline requires a maximum loss"),
        )
    ],
)
def test_a_bad_line_is_one_sentence_before_anything_is_sampled(base: Path, metric: str, line: Any, words: str) -> None:
    (base / "gate.yaml").write_text(yaml.safe_dump(policy_of({metric: line})))
    for command in (("gate", "gate.yaml"), ("gate", "gate.yaml", "--dry-run")):
        done = harness(base, *command)
        assert done.code in (2, 3)
        assert words in done.err
        assert len(done.err.splitlines()) == 1


def stub(values: dict[str, float]) -> ScoredRun:
    engine = Named(
        concurrency=64,
        own=True,
        remarks=(),
        draft_share=None,
        cache_hit_rate=None,
        **{"client_tokens_per_s": values["tokens_per_second"], "acceptance_length": values["acceptance_length"]},
    )
    score = Named(
        engine=engine,
        speculation=None,
        speed=Named(first_token_p99=values["first_token_p99"]),
        mean_completion_tokens=values["reply_length"],
    )
    scored = Named(score=score, record=Named(identity={}))
    return cast(ScoredRun, Named(benchmarks={"sums": scored}, manifest=Named(provenance=Named(servers={}))))


@pytest.mark.parametrize("n_former", [5, 10, 30])
def test_false_alarms_hold_over_all_lines_and_each_finds_what_it_says(n_former: int) -> None:
    """Runs that differ by 0.5 to 20%, by metric."""
    policy, rng = Policy.model_validate(policy_of(LINES)), np.random.default_rng(n_former)
    spread: dict[str, float] = dict(zip(LINES, (0.009, 0.005, 0.2, 0.03), strict=True))
    n = examples(240)
    alarms, finds = 0, dict.fromkeys(LINES, 0)

    def drawn(shift: Mapping[Any, float]) -> ScoredRun:
        noise = {name: math.exp(rng.normal(0, sd)) for name, sd in spread.items()}
        return stub({name: 100 * shift.get(name, 1.0) * noise[name] for name in spread})

    for _ in range(n):
        former = [check for _ in range(n_former) for check in check_lines(policy, [drawn({})], ())]
        alarms += any(check.state == "fail" for check in check_lines(policy, [drawn({})], former))
        # The loss that the line names with this history.
        signs = {check: 1 if check.metric in RISING else -1 for check in check_lines(policy, (), former)}
        shift = {check.metric: 1 + sign * (check.findable or 0.0) for check, sign in signs.items()}
        for check in check_lines(policy, [drawn(shift)], former):
            finds[check.metric] += check.state == "fail"
    waived = [msgspec.structs.replace(check, state="waived") for check in former]
    assert {check.known_runs for check in check_lines(policy, (), waived)} == {0}
    assert alarms / n <= 0.01 + 2 * np.sqrt(0.01 / n)
    for name, found in finds.items():
        assert found / n >= 0.94 - 3 * np.sqrt(0.05 * 0.95 / n), (name, found / n)


HISTORY_LINE = {"baseline": "history", "loss": "6%"}
KINDS: dict[str, Callable[[np.random.Generator], Any]] = {
    "one level": lambda _rng: np.zeros(60),
    "two levels": lambda rng: np.where(rng.random(60) < 0.5, 0.0, -0.1),
    "one night of five": lambda rng: np.where(rng.random(60) < 0.8, 0.0, -0.1),
    "every second night": lambda _rng: -0.1 * (np.arange(60) % 2),
    "an early fall": lambda rng: -0.1 * (np.arange(60) >= rng.integers(2, 5)),
    "a late fall": lambda rng: -0.1 * (np.arange(60) >= rng.integers(10, 40)),
    "a walk": lambda rng: 0.005 * rng.standard_normal(60).cumsum(),
}
"""Logarithms of the level of a metric, whose runs differ by 1%."""


def played(levels: Any, rng: np.random.Generator, line: Mapping[str, Any], sign: int = 1) -> list[MetricCheck]:
    """The decisions of a line on nights with these levels."""
    metric = "tokens_per_second" if sign > 0 else "first_token_p99"
    policy, former = Policy.model_validate(policy_of({metric: line})), list[MetricCheck]()
    for level in levels:
        value = 800 * math.exp(sign * (level + 0.01 * rng.standard_normal()))
        former += check_lines(policy, [stub(dict.fromkeys(LINES, value))], former)
    return former


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", KINDS)
def test_every_history_ends_in_verdicts_or_a_question(kind: str, sign: int) -> None:
    """After five nights, none passes at a level that a fall reached, and few healthy nights fail."""
    rng, failed, asked, low = np.random.default_rng(sign + 1), 0.0, 0.0, list[str]()
    n = examples(8)
    for _ in range(n):
        levels = KINDS[kind](rng)
        nights = played(levels, rng, HISTORY_LINE, sign)
        assert [each.waits for each in nights] == [True] * 5 + [False] * 55
        failed += sum(each.state == "fail" for each in nights) / n
        asked += sum("Set `" in each.why for each in nights) / n
        low += [each.state for each, level in zip(nights, levels, strict=True) if level == -0.1][8:]
    if kind == "one level":
        assert asked + failed < 2
    elif kind == "a late fall":
        assert low.count("fail") > 0.95 * len(low)
    elif kind == "an early fall":
        assert low.count("pass") == 0
    elif kind == "a walk":
        assert failed < 3
    else:
        assert failed < 3 < asked
        assert low.count("pass") < 0.05 * len(low)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_key_that_a_question_names_answers_it(sign: int) -> None:
    rng = np.random.default_rng(3)
    levels = KINDS["two levels"](rng)
    (*_, question) = (each for each in played(levels, rng, HISTORY_LINE, sign) if "Set `" in each.why)
    named = sorted((float(word) for word in re.findall(r"`baseline: ([\d.e+]+)`", question.why)), reverse=sign > 0)
    assert named == pytest.approx([800, 800 * math.exp(-0.1 * sign)], rel=0.01)
    assert question.state == "undecided"
    both, upper = (played(levels, rng, HISTORY_LINE | {"baseline": level}, sign)[20:] for level in named[::-1])
    assert not any("Set `" in each.why for each in both + upper)
    assert {each.state for each in both} == {"pass"}
    states = [(each.state, bool(level)) for each, level in zip(upper, levels[20:], strict=True)]
    assert set(states) == {("pass", False), ("fail", True)}
    fallen = played([*levels, *levels - 0.1], rng, HISTORY_LINE | {"baseline": named[1]}, sign)
    assert "fail" in {each.state for each in fallen[60:]}


def test_a_line_without_similar_runs_waits_for_nine_nights_at_most() -> None:
    policy, former = Policy.model_validate(policy_of({"acceptance_length": HISTORY_LINE})), list[MetricCheck]()
    for concurrency in range(12):
        run = stub(dict.fromkeys(LINES, 3.0))
        cast(Any, run.benchmarks["sums"].score).engine.concurrency = concurrency
        former += check_lines(policy, [run], former)
    assert [each.waits for each in former] == [True] * 9 + [False] * 3
    assert {each.state for each in former} == {"undecided"}


def test_a_question_exits_with_4_and_a_line_without_history_is_no_obstacle(base: Path) -> None:
    policy = policy_of({"acceptance_length": HISTORY_LINE}, loss=40) | {"history": "two-levels"}
    (base / "gate.yaml").write_text(yaml.safe_dump(policy))
    assert "found 0" in (foretold := harness(base, "gate", "gate.yaml", "--dry-run")).out
    assert foretold.code == 0
    for n, value in enumerate((3.0, 2.4, 3.01, 2.99, 2.41, 3.0, 2.4, 3.0)):
        decision(base, policy, night(base, f"ask-{n}", acceptance_length=value))
    code, lines = decision(base, policy, night(base, "ask", acceptance_length=2.4))
    assert (code, lines["acceptance_length"].state) == (4, "undecided")
    assert "which of two levels is right? Set `baseline: " in lines["acceptance_length"].why


HISTORIES = {"tokens/step": "acceptance_length", "tokens/s": "tokens_per_second", "fraction": "cache_hit_rate"}


def test_replayed_public_histories_raise_no_alarm_and_a_true_fall_does(base: Path, shared_data: Path) -> None:
    file = shared_data.parent / "metrics" / "histories.csv"
    if not file.is_file():
        pytest.skip(f"no histories of others: put them into {file.parent}")
    n_nights, alarms = 0, 0
    for number, row in enumerate(csv.DictReader(file.read_text().splitlines())):
        values = [float(word) for word in row["values_or_mean_sd"].split() if re.fullmatch(r"[\d.]+", word)]
        if row["unit"] not in HISTORIES or not row["n_runs"].isdecimal() or len(values) != int(row["n_runs"]):
            continue
        metric = HISTORIES[row["unit"]]
        field = "client_tokens_per_s" if metric == "tokens_per_second" else metric
        policy = policy_of({metric: {"baseline": "history", "loss": "5%"}}) | {"history": f"hist-{number}"}
        for each, value in enumerate(values):
            _, lines = decision(base, policy, night(base, f"h{number}-{each}", **{field: value}))
            n_nights, alarms = n_nights + 1, alarms + (lines[metric].state == "fail")
        if len(values) < 5:
            continue
        (base / "gate.yaml").write_text(yaml.safe_dump(policy))
        foretold = harness(base, "gate", "gate.yaml", "--dry-run").out
        least = (
            float(re.findall(rf"{metric}: a fall of ([\d.]+)% can be detected, based on \d+ similar", foretold)[0])
            / 100
        )
        fallen = float(np.exp(np.mean(np.log(values)))) * (1 - least)
        code, lines = decision(base, policy, night(base, f"h{number}-fallen", **{field: fallen}))
        assert (code, lines[metric].state) == (1, "fail"), row["history"]
    assert n_nights >= 20
    assert alarms == 0


def test_a_history_with_the_former_keys_of_metrics_is_read(base: Path) -> None:
    policy = policy_of({"acceptance_length": {"baseline": "history", "loss": "5%"}}) | {"history": "former"}
    for n, value in enumerate((3.0, 3.01, 2.99, 3.0, 3.02)):
        decision(base, policy, night(base, f"former-{n}", acceptance_length=value))
    history = base / "former" / "history.jsonl"
    text, expected = history.read_text(), harness(base, "gate", "gate.yaml", "--dry-run").out
    assert "based on 5 similar" in expected
    history.write_text(text.replace('"metrics":', '"figures":').replace('"metric":', '"figure":'))
    assert history.read_text() != text
    assert harness(base, "gate", "gate.yaml", "--dry-run").out == expected
    history.write_text(text.replace('"metrics":', '"numbers":'))
    assert harness(base, "gate", "gate.yaml", "--dry-run").out != expected


HELD = {"first_token": 2.0, "token_gap": None, "total": None, "share": 0.9}


@pytest.mark.parametrize(
    ("metric", "value", "ends", "held", "state"),
    [
        ("right_within", 0.99, (0.985, 0.994), {}, "pass"),
        ("right_within", 0.87, (0.86, 0.88), {}, "fail"),
        ("right_within", 0.99, (0.985, 0.994), {"share": 0.95}, "pass"),
        ("right_within", 0.99, (0.985, 0.994), {"first_token": 3.0}, "unknown"),
        ("right_within", 0.99, (0.985, 0.994), {"total": 9.0}, "unknown"),
        ("within", 0.0, (0.0, 0.03), {}, "fail"),
        ("within", 0.99, (None, None), {}, "undecided"),
    ],
)
def test_a_line_on_a_proportion_counts_sampling_noise(
    metric: str, value: float, ends: tuple[float, float], held: dict[str, float], state: str
) -> None:
    policy = Policy.model_validate(policy_of({metric: {"floor": 98}}, limits={"first_token": "2s"}))
    (check,) = check_lines(policy, [limited(metric, Rate(value, *ends), held)], [])
    assert ("unknown" if "harness score --limits first_token=2s" in check.why else check.state) == state, check.why


@pytest.mark.parametrize(("true", "n"), [(0.99, 50), (0.98, 100), (0.9, 400)])
def test_a_nights_own_requests_count_when_the_history_speaks(true: float, n: int) -> None:
    line = {"right_within": {"baseline": "history", "loss": "5%"}}
    policy, rng = Policy.model_validate(policy_of(line, limits={"first_token": "2s"})), np.random.default_rng(n)

    def checked(share: float, former: Sequence[MetricCheck]) -> MetricCheck:
        seen = rng.binomial(n, share) / n
        low, high = (float(end) for end in wilson(np.array(seen), np.array(n)))
        (check,) = check_lines(policy, [limited("right_within", Rate(seen, low, high), {})], former)
        return check

    later, fallen = list[str](), list[str]()
    for _ in range(examples(80)):
        nights: list[MetricCheck] = []
        for _ in range(10):
            nights.append(checked(true, nights))
        later += [each.state for each in nights[5:]]
        fallen.append(checked(0.8 * true, nights).state)
    assert later.count("fail") <= 0.01 * len(later) + 3 * math.sqrt(0.01 * len(later))
    assert fallen.count("fail") >= 0.7 * len(fallen)


def limited(metric: str, rate: Rate, held: Mapping[str, float]) -> ScoredRun:
    """A run of which this share of the requests is within limits."""
    other = Rate(1.0)
    within, right = (rate, other) if metric == "within" else (other, rate)
    kept = Goodput(
        **(HELD | held),
        n_requests=1,
        n_unknown=0,
        seconds=1,
        within=within,
        right=right,
        within_per_s=other,
        right_per_s=other,
    )
    score = Named(engine=None, speculation=None, goodput=kept)
    run = Named(
        benchmarks={"sums": Named(score=score, record=Named(identity={}))}, manifest=Named(provenance=Named(servers={}))
    )
    return cast(ScoredRun, run)


@pytest.mark.parametrize(
    ("more", "line", "words"),
    [
        ({}, {"floor": 90}, "metrics.within: requires `limits`"),
        ({"limits": {"first_token": "2s"}}, {"floor": 0.9}, "metrics.within: is in percent: write 90 for 0.9"),
        ({"limits": {"first_token": "2"}}, {"floor": 90}, "a time above 0 with its unit"),
    ],
)
def test_wrong_limits_of_a_policy_are_one_sentence(base: Path, more: Any, line: Any, words: str) -> None:
    (base / "gate.yaml").write_text(text := yaml.safe_dump(policy_of({"within": line}, **more)))
    done = harness(base, "gate", "gate.yaml", "--dry-run")
    at = "within:" if words.startswith("metrics") else "limits:"
    assert f"gate.yaml:{text[: text.index(at)].count(chr(10)) + 1}: " in done.err
    assert (done.code, words in done.err, len(done.err.splitlines())) == (2, True, 1), done.err


@pytest.mark.parametrize(("limit", "code"), [("60s", 0), ("1ms", 1)])
def test_a_gate_that_samples_counts_right_answers_within_limits(tmp_path: Path, limit: str, code: int) -> None:
    sums(tmp_path, 80)
    lines = {"within": {"floor": 50}, "right_within": {"floor": 50}}
    policy = policy_of(lines, limits={"total": limit}, max_samples=1) | {"false_alarm": 5}
    reply = able(1.0)
    with FakeServer(lambda request: [Pause(0.02), *reply(request)]) as server:
        policy["run"] |= {"base_url": server.base_url, "concurrency": 4}
        (tmp_path / "gate.yaml").write_text(yaml.safe_dump(policy))
        done = harness(tmp_path, "gate", "gate.yaml", "--out", "night", "--json")
    states = [(each["metric"], each["state"]) for each in json.loads(done.out)["metrics"]]
    word = "fail" if code else "pass"
    assert (done.code, states) == (code, [("right_within", word), ("within", word)]), done.out + done.err


SIGNS: dict[str, tuple[tuple[CallSign, ...], tuple[CallSign, ...]]] = {
    "schema": (("call", "fits"), ("call", "schema")),
    "calls": (("call", "fits"), ()),
    "parsed_calls": (("call", "fits"), ("unread_call",)),
}
"""The signs of a good and of a bad reply, by share."""


def gated(share: str, level: float, n: int, rounds: int, rng: np.random.Generator, silent: float = 0.0) -> Checked:
    """The decision on a share after some rounds, with a floor of 98 and a loss of 10 points. level: the true share.
    silent: fraction of replies that do not count toward schema accuracy.
    """
    good, bad = SIGNS[share]
    grades = [
        grade(str(name), index, "c", call_signs=() if rng.random() < silent else good if rng.random() < level else bad)
        for name in range(n)
        for index in range(rounds)
    ]
    counts = tally([question(str(name)) for name in range(n)], grades, rounds)
    scored = Named(questions=counts.questions, record=Named(identity={}, plan=Named(question_ids=None)))
    policy = Policy.model_validate(policy_of({share: {"floor": 98, "loss": 10}}, max_samples=4))
    return check_samples(policy, policy.lines[1], [cast(ScoredBenchmark, scored)], (), learn_from(policy, ()), n)


@pytest.mark.parametrize("share", SIGNS)
def test_a_share_is_decided_by_its_own_replies_and_rounds(share: str) -> None:
    rng, n = np.random.default_rng(3), examples(120)
    healthy, lost = (
        [gated(share, level, 60, 4, rng, silent=0.2 if share == "schema" else 0.0) for _ in range(n)]
        for level in (0.98, 0.88)
    )
    assert sum(each.state == "fail" for each in healthy) <= 0.01 * n + 3 * math.sqrt(0.01 * n)
    assert sum(each.state == "fail" for each in lost) >= 0.8 * n
    assert sum(each.state == "pass" for each in lost) <= 0.05 * n + 3 * math.sqrt(0.05 * n)
    first = gated(share, 0.83, 55, 1, rng)
    assert (first.state, first.rounds, first.label) == ("fail", 1, f"sums {share}"), first.why
    assert gated("schema", 0.98, 60, 1, rng, silent=1.0).why == "no reply counts toward this share"


def test_a_gate_samples_until_its_shares_are_decided(tmp_path: Path) -> None:
    """The accuracy is decided in the first round; too few answers are seen only later."""
    sums(tmp_path, 60)
    n_asked, knows, declines = count(), able(1.0), serving(lambda _request: Said("I would rather not say.", 5))
    silent = FakeServer(lambda request: (knows if next(n_asked) % 20 else declines)(request))
    policy = policy_of({"answered": {"floor": 99, "loss": 4}}, loss=30, max_samples=4) | {"run_deviation": 0}
    with silent as server:
        policy["run"]["base_url"] = server.base_url
        (tmp_path / "gate.yaml").write_text(yaml.safe_dump(policy))
        done = harness(tmp_path, "gate", "gate.yaml", "--out", "out", "--json")
    accuracy, answered = json.loads(done.out)["checks"]
    assert (accuracy["state"], accuracy["rounds"]) == ("pass", 1)
    assert answered["rounds"] > 1
    assert (done.code, answered["state"]) in {(1, "fail"), (4, "undecided")}, answered


def test_a_gate_names_the_replies_that_broke_since_the_last_comparable_run(tmp_path: Path) -> None:
    sums(tmp_path, 60)
    knows, declines = able(1.0), serving(lambda _request: Said("I would rather not say.", 5))
    policy, silent = policy_of({"answered": {"floor": 80, "loss": 20}}, loss=50, max_samples=1), set[bytes]()
    policy |= {"run_deviation": 0}

    def night(name: str) -> tuple[str, str]:
        """What a night prints about broken replies, and the text of its pictures."""
        done = harness(tmp_path, "gate", "gate.yaml", "--out", name)
        assert done.code == 0, done.err
        page = (tmp_path / name / "gate.html").read_text()
        return "\n".join(line for line in done.out.splitlines() if " since " in line), page

    with FakeServer(
        lambda request: (declines if any(each in request.body for each in silent) else knows)(request)
    ) as server:
        policy["run"]["base_url"] = server.base_url
        (tmp_path / "gate.yaml").write_text(yaml.safe_dump(policy))
        said, page = night("first")
        assert (said, "sums answered since" in page) == ("", False), "nothing came before it"
        silent |= {b" 3 +", b" 5 +"}
        said, page = night("second")
        assert "58 of 60 replies intact both times, 0 mended, 0 broken both times, 2 broke: " in said
        assert {*re.findall(r"q\d+ sample 0", said)} == {"q3 sample 0", "q5 sample 0"}
        assert said.strip() in page
        silent -= {b" 3 +"}
        assert "58 of 60 replies intact both times, 1 mended, 1 broken both times, 0 broke" in night("third")[0]
        shutil.rmtree(tmp_path / "third")
        said, page = night("fourth")
        assert ("replies cannot be read" in said, "sums answered since" in page) == (True, False)
