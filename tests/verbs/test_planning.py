"""`harness plan`: the samples that it names find the difference four times in five, and it says what they take.

For: harness.cli.plan.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import harness as reasoning_harness
from harness.asking.options import PlanOptions
from harness.core.errors import UsageError
from harness.runs import Manifest, Plan, RunFolder
from harness.scoring.stats import Z_95, normal_two_sided, t_two_sided
from harness.scoring.stats_differences import (
    SampleSpread,
    fewest,
    holm,
    margin_reach,
    question_difference,
    samples_to_detect,
    sampling_difference_limits,
    score_variance,
)
from harness.verbs.plan import plan
from harness.verbs.plan_sources import PlanSource
from tests.faults.server import FaultServer
from tests.reports.run_folders import write_run
from tests.system.command import harness
from tests.verbs.test_race import able


def test_that_many_samples_find_the_difference_four_times_in_five() -> None:
    rng = np.random.default_rng(2)
    chances = rng.beta(0.9, 0.9, size=60)
    other = chances * (1 - 0.05 / chances.mean())
    gap = float((chances - other).mean())
    n = samples_to_detect(SampleSpread(60, float(chances.mean()), float((chances * (1 - chances)).mean())), gap)
    assert n is not None
    counts = np.full(60, float(n))
    ours, theirs = (rng.binomial(n, p, size=(2000, 60)).astype(float) for p in (other, chances))
    z = (ours - theirs).mean(axis=-1) / n / np.sqrt(score_variance(ours, counts, theirs, counts))
    assert float((np.abs(z) > Z_95).mean()) == pytest.approx(0.8, abs=0.04)


def test_a_planned_margin_is_shown_four_times_in_five_and_a_loss_of_it_passes_in_one_of_forty() -> None:
    rng = np.random.default_rng(5)
    chances = rng.beta(0.9, 0.9, size=60)
    spread = SampleSpread(60, float(chances.mean()), float((chances * (1 - chances)).mean()))
    margin = 0.05
    n = fewest(lambda samples: margin_reach(spread, samples), margin)
    assert n is not None
    counts = np.full(60, float(n))

    def passed(other: np.ndarray[Any, Any]) -> float:
        ours, theirs = (rng.binomial(n, p, size=(4000, 60)).astype(float) for p in (other, chances))
        return float((sampling_difference_limits(ours, counts, theirs, counts).low > -margin).mean())

    assert passed(chances) == pytest.approx(0.8, abs=0.025)
    assert passed(chances * (1 - margin / chances.mean())) < 0.025 + 0.01
    # Wrong twin: a loss of half the margin passes far more often.
    assert passed(chances * (1 - margin / 2 / chances.mean())) > 0.15


@pytest.mark.parametrize(("n_tests", "least", "most"), [(2, 0.77, 0.9), (1, 0.6, 0.75)])
def test_the_power_holds_for_the_verdict_that_is_printed(n_tests: int, least: float, most: float) -> None:
    """Two p values are corrected together; planned for one test alone, the verdict comes in less than 80 %."""
    rng = np.random.default_rng(4)
    chances = rng.beta(2, 2, size=30)
    gap = 0.06
    other = chances + gap * (1 - chances) / (1 - chances).mean()
    spread = SampleSpread(30, float(chances.mean()), float((chances * (1 - chances)).mean()))
    n = samples_to_detect(spread, gap, None, n_tests)
    assert n is not None
    counts = np.full(30, float(n))
    ours, theirs = (rng.binomial(n, p, size=(1000, 30)).astype(float) for p in (other, chances))
    gaps = (ours - theirs) / n
    z = gaps.mean(axis=-1) / np.sqrt(score_variance(ours, counts, theirs, counts))
    t = gaps.mean(axis=-1) / np.sqrt(question_difference(gaps).variance)
    found = [holm([normal_two_sided(a), t_two_sided(b, 29)])[0] < 0.05 for a, b in zip(z, t, strict=True)]
    assert least < float(np.mean(found)) < most


def replan(run: Path, *, samples: int, **settings: Any) -> None:
    """Have the stored run be asked for so many samples of each question, with these settings."""
    folder = RunFolder(run)
    manifest = Manifest.load(folder)
    records = {
        name: msgspec.structs.replace(record, plan=Plan(samples=samples), settings={**record.settings, **settings})
        for name, record in manifest.benchmarks.items()
    }
    msgspec.structs.replace(manifest, benchmarks=records).save(folder)


def test_a_plan_names_samples_tokens_time_and_money(tmp_path: Path) -> None:
    rows = [{"id": f"q{i}", "problem": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(12)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with FaultServer(able(0.5)) as server:
        given = (
            "--data",
            "sums.jsonl",
            "--id-key",
            "id",
            "--base-url",
            server.base_url,
            "--out",
            "pilot",
            *["--no-canary", "--concurrency", "4", "--rpm", "9000", "--attempts", "3", "--first-token-timeout", "90"],
        )
        assert harness(tmp_path, "run", *given, "--samples", "400", "--pilot").code == 0
    assert harness(tmp_path, "score", "pilot").code == 0
    done = harness(tmp_path, "plan", "pilot", "--detect", "2", "--price-in", "1", "--price-out", "10")
    assert done.code == 0, done.err
    assert "samples a question in each of two runs find a difference of 2 points" in done.out
    assert "new tokens" in done.out
    assert not re.search(r"± 0[.,]?0*\b", done.out)
    assert "time:" in done.out
    assert "USD" in done.out
    folder = tmp_path / "pilot"
    (priced,) = reasoning_harness.plan(folder, 2, price_in=1, price_out=10)
    assert priced.forecast is not None
    assert f"about {priced.forecast.usd:,.2f} USD" in done.out
    (planned,) = json.loads(harness(tmp_path, "plan", "pilot", "--detect", "2", "--json").out)
    assert f"sums: {planned['samples']:,} samples a question" in done.out
    assert planned["forecast"]["n_samples"] > 0
    assert planned["forecast"]["usd"] is None
    (two,), (four,) = plan_of(tmp_path, 0.02), plan_of(tmp_path, 0.04)
    assert two.samples == planned["samples"]
    assert 3.7 * four.samples < two.samples < 4 * four.samples
    # A run of more rounds that is unfinished is completed, at the prices that it was given.
    replan(folder, samples=3000, prices={"prompt": 1.0, "completion": 10.0})
    unfinished = harness(tmp_path, "plan", "pilot", "--detect", "20")
    assert "to complete this run, which was asked for 3,000 samples a question:\n" in unfinished.out
    assert f"forecast: {12 * (3000 - 2):,} samples are left" in unfinished.out
    assert "--samples 3000 " in unfinished.out
    pace = "--concurrency 4 --rpm 9000.0 --attempts 3 --first-token-timeout 90.0 --no-canary"
    assert f" {pace} --out pilot --price-in 1 --price-out 10 && harness score pilot\n" in unfinished.out
    assert "with 4 requests in flight" in unfinished.out
    assert "was extended" not in unfinished.out
    assert (
        "--price-in 2 --price-out 20 &&"
        in harness(tmp_path, "plan", "pilot", "--detect", "2", "--price-in", "2", "--price-out", "20").out
    )
    replan(folder, samples=2, prices=None)
    # The name of the file of questions stands for its latest scored run, as a benchmark's name does.
    shutil.copytree(folder, tmp_path / "results" / "mine")
    by_file, by_name = (harness(tmp_path, "plan", f"{name}:64").out for name in ("sums.jsonl", "sums"))
    assert by_file.startswith(f"from {tmp_path}/results/mine:\nsums: 64 samples a question")
    assert by_file == by_name
    # An accuracy that is given goes before the former run's, which may be another model's.
    assert "scaled to an accuracy of 80.0 %" in harness(tmp_path, "plan", "sums.jsonl:64", "--accuracy", "80").out
    extending = harness(tmp_path, "plan", "sums.jsonl", "--detect", "2").out
    assert f"--out {tmp_path}/results/mine && harness score {tmp_path}/results/mine\n" in extending
    # The wrong twin: the file has another question by now.
    rows[0]["problem"] = "What is 100 + 1?"
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert "nobody publishes a spread on it" in harness(tmp_path, "plan", "sums.jsonl:64").out


def plan_of(folder: Path, detect: float):  # type: ignore[no-untyped-def]
    planned = plan([PlanSource(name=str(folder / "pilot"))], PlanOptions.of(detect=100 * detect))
    return [one.needed for one in planned]


def test_what_cannot_be_found_is_said(tmp_path: Path) -> None:
    write_run(tmp_path / "pilot", benchmarks=[("demo", 30, 2)])
    done = harness(tmp_path, "plan", "pilot", "--detect", "1", "--versus", "4")
    assert done.code == 0
    assert "no number of samples finds 1 point beside 4 samples" in done.out
    refused = harness(tmp_path, "plan", "pilot", "--detect", "0")
    assert (refused.code, "--detect" in refused.err) == (2, True)
    for words in (("aime24:64", "--versus", "0"), ("aime24:64", "--versus", "-5"), ("pilot", "--price-in", "1")):
        refused = harness(tmp_path, "plan", *words)
        assert (refused.code, words[1] in refused.err or "--detect" in refused.err) == (2, True)
        assert "Traceback" not in refused.err
    for price in ("--price-in", "--price-out"):
        unknown = harness(tmp_path, "plan", "aime24:64", price, "1")
        assert (unknown.code, "the cost is unknown until a pilot" in unknown.out) == (0, True)


def test_a_plan_counts_clusters_for_a_claim_about_other_questions_as_the_comparison_does(tmp_path: Path) -> None:
    write_run(tmp_path / "alone", benchmarks=[("demo", 60, 4)])
    write_run(tmp_path / "clustered", benchmarks=[("demo", 60, 4)], per_cluster=4)
    assert "60 questions never show a difference below 2.4 points; one of 2 points takes at least 71 questions\n" in (
        harness(tmp_path, "plan", "alone", "--detect", "2").out
    )
    assert (
        "60 questions in 15 clusters never show a difference below 10.1 points; one of 2 points takes at least "
        "284 questions in 71 clusters\n"
    ) in harness(tmp_path, "plan", "clustered", "--detect", "2").out
    shutil.copytree(tmp_path / "clustered", tmp_path / "again")
    assert "new questions    -10.1 to +10.1" in harness(tmp_path, "compare", "clustered", "again").out
    (planned,) = reasoning_harness.plan(tmp_path / "clustered", 2)
    assert (planned.n_clusters, planned.least_questions) == (15, 284)


def test_a_plan_beside_a_published_score_is_that_of_verify(tmp_path: Path) -> None:
    """One test, and no other questions: both say the same smallest difference and number of samples."""
    write_run(tmp_path / "mine", benchmarks=[("demo", 30, 20)])
    (tmp_path / "expected.yaml").write_text(
        "schema: 1\nsource: {title: A report, url: 'https://example.org/report', by: others}\n"
        "settings: {temperature: 0.6}\nquestions: {demo: 30}\nscores:\n"
        "  - {model: org/model-7b, benchmark: demo, metric: pass@1, percent: PERCENT, samples: 64}\n".replace(
            "PERCENT", f"{100 * (accuracy := _accuracy(tmp_path / 'mine')) + 3:.1f}"
        )
    )
    (verified,) = reasoning_harness.verify(tmp_path / "mine", published=tmp_path / "expected.yaml")
    (beside,) = verified.comparisons
    assert beside.detectable is not None
    assert beside.difference is not None
    (planned,) = reasoning_harness.plan(f"{tmp_path / 'mine'}:20", published_samples=64)
    # The plan does not know the published score, which is 3 points higher here.
    assert planned.smallest_difference == pytest.approx(beside.detectable, rel=1e-2)
    (needed,) = reasoning_harness.plan(tmp_path / "mine", 100 * abs(beside.difference), published_samples=64)
    assert needed.samples == beside.settling is not None
    assert needed.samples > 20
    assert needed.least_questions is None
    out = harness(tmp_path, "verify", "mine", "--published", "expected.yaml").out
    assert f"could have seen {100 * beside.detectable:.1f} points" in out
    assert f"; {needed.samples} samples a question would show a difference of 3.0)" in out
    out = harness(tmp_path, "plan", "mine:20", "--published-samples", "64").out
    assert "20 samples a question compared with a published score of 64 samples find a difference of" in out
    assert "other questions" not in out
    # Two p values of `harness compare` need more.
    (run,) = reasoning_harness.plan(f"{tmp_path / 'mine'}:20", other_samples=64)
    assert run.smallest_difference > 1.05 * planned.smallest_difference
    refused = harness(tmp_path, "plan", "mine:20", "--versus", "64", "--published-samples", "64")
    assert (refused.code, "give one of the two" in refused.err, 0 < accuracy < 1) == (2, True, True)


def _accuracy(folder: Path) -> float:
    """The accuracy of a scored run."""
    return float(json.loads((folder / "demo" / "scores.json").read_text())["accuracy"])


def test_a_difference_that_no_model_can_have_is_refused(tmp_path: Path) -> None:
    refused = harness(tmp_path, "plan", "aime24", "--detect", "70", "--accuracy", "59")
    assert refused.code == 2
    assert "no accuracy differs by 70 points from 59.0 %, which the plan takes: give at most 59" in refused.err
    assert harness(tmp_path, "plan", "aime24", "--detect", "59", "--accuracy", "59").code == 0


def test_a_plan_promises_no_difference_that_no_model_can_have(tmp_path: Path) -> None:
    few = harness(tmp_path, "plan", "aime24:1", "--accuracy", "3", "--margin", "1").out
    assert few.startswith(
        "aime24: 1 sample a question in each of two runs shows no margin that is possible on the same"
    )
    assert "good: no model is worse than one of 3.0 % by more than 3.0 points\n" in few
    rows = "".join(json.dumps({"question": f"{i} + 1?", "answer": str(i + 1)}) + "\n" for i in range(10))
    (tmp_path / "own.jsonl").write_text(rows, encoding="utf-8")
    single = harness(tmp_path, "plan", "own.jsonl:1").out
    assert single.startswith("own: 1 sample a question in each of two runs finds no difference that is possible on the")
    assert "repetitions: no accuracy differs by more than 50.0 points from 50.0 %\n" in single
    # The wrong twins: more samples find one, and at 10 % the model whose samples vary more is the better one.
    assert "finds a difference" not in single
    assert (
        "own: 2 samples a question in each of two runs find a difference of 4"
        in harness(tmp_path, "plan", "own.jsonl:2").out
    )
    assert "allows for a better model whose" in harness(tmp_path, "plan", "aime24:1", "--accuracy", "10").out
    assert "allows for a worse model whose" in harness(tmp_path, "plan", "aime24:1", "--accuracy", "90").out


def test_a_run_of_other_questions_under_the_name_of_a_benchmark_shows_no_spread_of_it(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    settings = {"data": "aime24.jsonl"}
    write_run(tmp_path / "results" / "sums", benchmarks=[("aime24", 30, 4)], settings=settings)
    done = harness(tmp_path, "plan", "aime24:64")
    assert "the spread is the median of 65 published models on this benchmark" in done.out
    assert "results/sums; by chance in its samples" in harness(tmp_path, "plan", "results/sums:64").out
    write_run(tmp_path / "results" / "real", benchmarks=[("aime24", 30, 4)])
    assert "results/real:\n" in harness(tmp_path, "plan", "aime24:64").out


def test_one_sample_a_question_shows_no_spread(tmp_path: Path) -> None:
    write_run(tmp_path / "pilot", benchmarks=[("demo", 6, 1)])
    with pytest.raises(
        UsageError, match=r"pilot has one sample of each question.* harness run demo:2 … && harness score"
    ):
        plan_of(tmp_path, 0.02)
    write_run(tmp_path / "own", benchmarks=[("mine", 6, 1)], settings={"data": "my rows.jsonl", "without_card": True})
    refused = harness(tmp_path, "plan", "own", "--detect", "2")
    assert "Take two and score them: harness run --data 'my rows.jsonl' --samples 2 … && harness" in refused.err
    # The wrong twin: a run that is unfinished is never advised fewer samples than its own plan has.
    for name, ending in (("pilot", "demo:29 … --out"), ("own", "--data 'my rows.jsonl' --samples 29 … --out")):
        replan(tmp_path / name, samples=29)
        refused = harness(tmp_path, "plan", name, "--detect", "2")
        assert f"{name} is unfinished (1 complete round of 29), and two rounds show a spread" in refused.err
        assert f"harness run {ending} {tmp_path / name} && harness score {tmp_path / name}\n" in refused.err


def test_a_run_of_one_sample_a_question_stands_back_for_an_older_one_that_is_of_use(tmp_path: Path) -> None:
    for name, samples in {"single": 1, "usable": 2}.items():
        write_run(tmp_path / "results" / name, benchmarks=[("demo", 30, samples)])
    os.utime(tmp_path / "results" / "usable" / "demo" / "scores.json", (1e9, 1e9))
    done = harness(tmp_path, "plan", "demo", "--detect", "2")
    assert done.code == 0, done.err
    assert done.out.startswith(f"from {tmp_path}/results/usable:\ndemo: ")
    shutil.rmtree(tmp_path / "results" / "usable")
    refused = harness(tmp_path, "plan", "demo", "--detect", "2")
    assert refused.code == 2
    assert "no scored run of demo in results shows a spread. demo of " in refused.err
    assert "results/single has one sample of each question, which shows no spread" in refused.err
    assert "harness run demo:2" in refused.err


def test_a_benchmarks_name_stands_for_the_latest_scores_of_it_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, benchmarks in {"old": ["demo", "sums"], "new": ["demo"], "another": ["sums"]}.items():
        write_run(tmp_path / "results" / name, benchmarks=[(one, 30, 2) for one in benchmarks])
    for age, name in enumerate(("another", "new", "old")):
        for scores in (tmp_path / "results" / name).glob("*/scores.json"):
            os.utime(scores, (1e9 - age, 1e9 - age))
    done = harness(tmp_path, "plan", "demo", "--detect", "2")
    assert done.code == 0, done.err
    assert done.out.startswith(f"from {tmp_path}/results/new:\ndemo: ")
    os.utime(tmp_path / "results" / "old" / "demo" / "scores.json", (2e9, 2e9))
    done = harness(tmp_path, "plan", "demo", "--detect", "2")
    assert done.out.startswith(f"from {tmp_path}/results/old:\ndemo: ")
    assert "sums" not in done.out
    monkeypatch.chdir(tmp_path)
    (planned,) = reasoning_harness.plan("demo", 2)
    assert planned.run == f"{tmp_path}/results/old"
    assert f"demo: {planned.samples:,} samples a question" in done.out
    with pytest.raises(UsageError, match="unknown benchmark 'nowhere'"):
        reasoning_harness.plan("nowhere", 2)


def test_a_folder_goes_before_a_benchmark_of_its_name(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "other", benchmarks=[("demo", 30, 2)])
    write_run(tmp_path / "demo", benchmarks=[("sums", 30, 2)])
    done = harness(tmp_path, "plan", "demo", "--detect", "2")
    assert done.out.startswith("sums: ")


def test_without_a_run_of_the_benchmark_it_says_what_to_do(tmp_path: Path) -> None:
    typical = harness(tmp_path, "plan", "demo", "--detect", "2")
    assert (typical.code, "results/ holds no scored run of it" in typical.out) == (0, True)
    refused = harness(tmp_path, "plan", "nowhere", "--detect", "2")
    assert refused.code != 0
    assert "unknown benchmark 'nowhere'" in refused.err
    write_run(tmp_path / "results" / "mine", benchmarks=[("demo", 30, 2)])
    (tmp_path / "results" / "mine" / "demo" / "scores.json").unlink()
    refused = harness(tmp_path, "plan", "demo", "--detect", "2")
    assert refused.code != 0
    assert f"harness score {tmp_path}/results/mine" in refused.err
    refused = harness(tmp_path, "plan", "results/mine2", "--detect", "2")
    assert "results/mine2" in refused.err
    assert "there is no run" in refused.err


def test_a_recorded_concurrency_that_is_no_number_is_passed_over(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", benchmarks=[("demo", 6, 4)])
    manifest = json.loads(run.manifest.read_text("utf-8"))
    for benchmark in manifest["benchmarks"].values():
        benchmark["settings"]["concurrency"] = [1]
    run.manifest.write_text(json.dumps(manifest), "utf-8")
    done = harness(tmp_path, "plan", "run:8", "--detect", "5")
    assert done.code == 0, done.err
