"""`harness plan`: the samples that it names find the difference four times in five, and it says what they take.

For: harness.cli.plan.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness as reasoning_harness
from harness.deciding.published import load_published
from harness.deciding.stats_differences import (
    SampleSpread,
    fewest,
    holm,
    margin_reach,
    planned_variance,
    question_difference,
    ratio_limits,
    scaled_difference,
    score_variance,
)
from harness.scoring.stats import normal_two_sided, t_two_sided
from tests.reports.run_folders import write_run
from tests.system.command import harness


def test_a_planned_margin_is_shown_four_times_in_five_and_a_loss_of_it_passes_in_one_of_forty() -> None:
    rng = np.random.default_rng(5)
    chances = rng.beta(0.9, 0.9, size=60)
    spread = SampleSpread(60, float(chances.mean()), float((chances * (1 - chances)).mean()))
    margin = 0.05
    n = fewest(lambda samples: margin_reach(spread, samples), margin)
    counts = np.full(60, float(n))

    def passed(other: np.ndarray[Any, Any]) -> float:
        ours, theirs = (rng.binomial(n, p, size=(4000, 60)).astype(float) for p in (other, chances))
        return float((scaled_difference(ours, counts, theirs, counts)(1.0).low > -margin).mean())

    assert passed(chances) == pytest.approx(0.8, abs=0.025)
    assert passed(chances * (1 - margin / chances.mean())) < 0.025 + 0.01
    # Wrong twin: a loss of half the margin passes far more often.
    assert passed(chances * (1 - margin / 2 / chances.mean())) > 0.15

    # A recovery is such a margin. Its interval ends above it a little more often: only a part of the baseline is taken.
    ours, theirs = rng.binomial(n, chances, size=(2, 1000, 60)).astype(float)
    low = ratio_limits(scaled_difference(ours, counts, theirs, counts), (1000,)).low
    assert 0.78 < (low > 1 - margin / chances.mean()).mean() < 0.9


@pytest.mark.parametrize(("n_tests", "least", "most"), [(2, 0.77, 0.9), (1, 0.6, 0.75)])
def test_the_power_holds_for_the_verdict_that_is_printed(n_tests: int, least: float, most: float) -> None:
    """Two p values are corrected together; planned for one test alone, the verdict comes in less than 80%."""
    rng = np.random.default_rng(4)
    chances = rng.beta(2, 2, size=30)
    gap = 0.06
    other = chances + gap * (1 - chances) / (1 - chances).mean()
    spread = SampleSpread(30, float(chances.mean()), float((chances * (1 - chances)).mean()))
    n = fewest(lambda samples: planned_variance(spread, samples), gap, n_tests)
    counts = np.full(30, float(n))
    ours, theirs = (rng.binomial(n, p, size=(1000, 30)).astype(float) for p in (other, chances))
    gaps = (ours - theirs) / n
    z = gaps.mean(axis=-1) / np.sqrt(score_variance(ours, counts, theirs, counts))
    t = gaps.mean(axis=-1) / np.sqrt(question_difference(gaps).variance)
    found = [holm([normal_two_sided(a), t_two_sided(b, 29)])[0] < 0.05 for a, b in zip(z, t, strict=True)]
    assert least < float(np.mean(found)) < most


def published(benchmark: str, accuracy: float | None = None) -> SampleSpread:
    """The published spread of a benchmark, of a model of this accuracy in per cent."""
    (needed,) = reasoning_harness.plan(f"{benchmark}:64", accuracy=accuracy)
    return SampleSpread(needed.n_questions, needed.accuracy, needed.deviation**2)


def write_questions(path: Path, n: int) -> None:
    """Write a file of n questions of one's own."""
    path.write_text("".join(f'{{"problem": "{i} + 1?", "answer": "{i + 1}"}}\n' for i in range(n)))


def test_the_published_spread_is_the_median_and_is_scaled_to_a_stated_accuracy() -> None:
    variances = [
        score.run_deviation**2 * 30
        for score in load_published()
        if (score.benchmark, score.metric) == ("aime24", "pass@1") and score.run_deviation
    ]
    assert published("aime24").variance == pytest.approx(float(np.median(variances)))
    half, high = (published("aime24", accuracy).variance for accuracy in (50, 95))
    assert high / half == pytest.approx(0.95 * 0.05 / 0.25)
    # Near 100% the questions themselves must differ.
    assert published("aime24", 98).variance == pytest.approx(0.4 * 0.6 / 30)


def test_a_plan_before_any_run_takes_a_published_spread_or_an_accuracy(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "mine", benchmarks=[("aime24", 30, 4)])  # a run is taken only where it is named
    done = harness(tmp_path, "plan", "aime24:64", "--detect", "2")
    assert done.code == 0, done.err
    assert done.out.startswith(
        "aime24: 64 samples per question in each of two runs detect a difference of 2.8 points on the same 30 "
        "questions (80% power)\naime24: 114 samples per question in each of two runs detect a difference of 2 points on"
    )
    assert "the median of 65 published scores of models on this benchmark" in done.out
    write_questions(tmp_path / "my50.jsonl", 50)
    for name in ("gsm8k", "my50.jsonl"):
        refused = harness(tmp_path, "plan", name, "--detect", "2")
        assert (refused.code, "no published spread is known" in refused.err) == (2, True)
        assert "--accuracy, or a scored run instead of the name" in refused.err
        given = harness(tmp_path, "plan", name, "--detect", "2", "--accuracy", "91")
        assert (given.code, "accuracy 91.0%, as specified; spread from" in given.out) == (0, True), given.err
    assert " on the same 50 questions " in harness(tmp_path, "plan", "my50.jsonl:16", "--accuracy", "80").out
    card = "title: Own\nsource: {kind: file, path: rows.jsonl}\ncolumns: {question: question, answer: answer}\n"
    (tmp_path / "own.yaml").write_text(card)
    assert "add `questions: N`" in harness(tmp_path, "plan", "./own.yaml:64", "--accuracy", "80").err
    (tmp_path / "own.yaml").write_text(f"{card}questions: 3\n")
    assert "on the same 3 questions" in harness(tmp_path, "plan", "./own.yaml:64", "--accuracy", "80").out


def test_what_no_number_of_samples_finds_is_said_and_the_least_is_possible(tmp_path: Path) -> None:
    write_questions(tmp_path / "own.jsonl", 4)
    words = ("plan", "own.jsonl", "--accuracy", "50", "--detect")
    capped = harness(tmp_path, *words, "0.11").out
    found = re.search(
        r"no number of samples up to 100,000 can detect a difference of 0.11 .*; the smallest possible .* is (\S+) po",
        capped,
    )
    assert "no number" not in harness(tmp_path, *words, found[1]).out
    one = harness(tmp_path, "plan", "aime24:1", "--accuracy", "3", "--margin", "1").out
    assert one.startswith("aime24: 1 sample per question in each of two runs shows no possible margin")


def test_a_run_without_a_spread_or_a_score_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "pilot", benchmarks=[("demo", 6, 1)])
    refused = harness(tmp_path, "plan", "pilot/", "--detect", "2")
    assert (
        "one sample per question, which is not enough to estimate the spread: sample a quarter of the questions twice"
        in (refused.err)
    )
    write_run(tmp_path / "results" / "mine", benchmarks=[("demo", 30, 2)])
    unknown = harness(tmp_path, "plan", "mine", "--detect", "2")
    assert "mine is no benchmark. Did you mean the run results/mine?" in unknown.err
    assert "there is no run" in harness(tmp_path, "plan", "results/mine2", "--detect", "2").err
    given = harness(tmp_path, "plan", "results/mine", "--detect", "5", "--accuracy", "50")
    assert (given.code, "omit this option" in given.err) == (2, True)
    (tmp_path / "results" / "mine" / "demo" / "scores.json").unlink()
    assert "run `harness score` first" in harness(tmp_path, "plan", "results/mine", "--detect", "2").err


def test_a_printed_difference_is_one_that_the_samples_find(tmp_path: Path) -> None:
    """It is rounded up: the plan for the printed difference never asks for more samples."""
    for samples in (1, 7, 50, 199):
        printed = harness(tmp_path, "plan", f"aime24:{samples}").out.split("difference of ")[1].split()[0]
        (needed,) = reasoning_harness.plan("aime24", float(printed))
        assert needed.samples <= samples


def test_several_benchmarks_are_planned_in_their_order(tmp_path: Path) -> None:
    spaces, commas = (
        harness(tmp_path, "plan", *words) for words in (["aime25:16", "aime24:64"], ["aime25:16,aime24:64"])
    )
    assert spaces.out == commas.out
    assert spaces.out.index("aime25: 16 samples") < spaces.out.index("aime24: 64 samples")
    by_python = reasoning_harness.plan(["aime25:16", Path("aime24:64")])
    assert [one.benchmark for one in by_python] == ["aime25", "aime24"]
    both = json.loads(harness(tmp_path, "plan", "aime25", "aime24", "--detect", "2", "--json").out)
    assert [plan["benchmark"] for plan in both] == ["aime25", "aime24"]


def test_benchmarks_that_are_compared_together_need_the_samples_of_their_corrected_tests(tmp_path: Path) -> None:
    """Two p values of each benchmark, and one of their mean."""
    for words, n_tests in ((["aime24"], 2), (["aime24", "aime25"], 5), (["aime24", "aime25", "math500"], 7)):
        planned = json.loads(harness(tmp_path, "plan", *words, "--detect", "2", "--json").out)[0]
        assert planned["samples"] == fewest(
            lambda samples: planned_variance(published("aime24"), samples), 0.02, n_tests
        )


def test_a_margin_is_planned_in_both_directions_and_for_several_benchmarks(tmp_path: Path) -> None:
    (needed,) = json.loads(harness(tmp_path, "plan", "aime24", "--margin", "1", "--json").out)
    size = needed["samples"]
    (back,) = json.loads(harness(tmp_path, "plan", f"aime24:{size}", "--margin", "1", "--json").out)
    (fewer,) = json.loads(harness(tmp_path, "plan", f"aime24:{size - 1}", "--margin", "1", "--json").out)
    assert back["smallest_difference"] <= 0.01 < fewer["smallest_difference"]
    # A margin is one test, and equally good models vary alike: fewer samples than a difference needs.
    (other,) = reasoning_harness.plan("aime24", 1)
    assert size < other.samples
    assert size == reasoning_harness.plan("aime24", margin=1)[0].samples
    done = harness(tmp_path, "plan", "aime24:64,math500:4", "--margin", "1")
    assert 'show "not worse by 1 point or more" on the same 30 questions (80% power, if both' in done.out
    assert "other questions" not in done.out
    share = harness(tmp_path, "plan", "aime24", "--accuracy", "40", "--recovery", "95")
    assert " show a recovery of more than 95% on the same 30 questions" in share.out
    (points,) = json.loads(harness(tmp_path, "plan", "aime24", "--accuracy", "40", "--margin", "2", "--json").out)
    assert share.out.startswith(f"aime24: {points['samples']} samples ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("aime24", "or a number of samples after the name (such as aime24:64)"),
        ("aime24:64 aime25", "or a number of samples after the name (such as aime25:64)"),
        ("aime24:64:2", "one number of samples"),
        ("aime24:0", "one number of samples"),
        ("aime24:many", "aime24:many: expected a benchmark or a run, optionally with one number of samples"),
        ("aime24:", "one number of samples"),
        ("aime24 16 --detect 2", "unknown benchmark '16'"),
        ("nothing:4", "unknown benchmark 'nothing'"),
        ("results/nothing:4", "there is no run at"),
        ("aime24 --json", "the loss to rule out (such as --margin 2 or --recovery 95), or a number of samples"),
        ("aime24:64 --accuracy 0.02", "enter 2 for 2 points"),
        ("aime24:64,aime-2024:16", "aime24 is listed twice: each benchmark can appear only once in a plan"),
        ("aime24:64 --prices=-1,2", "expected two prices, each 0 or more"),
        ("aime24 --detect 0", "--detect 0"),
        ("aime24 --detect 70 --accuracy 59", "cannot differ by 70 points from the assumed 59.0%: use at most 59"),
        ("aime24:64 --margin 1 --detect 1", "specify only one of them"),
        ("aime24:64 --margin 1 --recovery 95", "specify only one of them"),
        ("aime24:64 --recovery 0.95", "greater than or equal to 50"),
        ("aime24:64 --margin 0", "greater than 0"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, words: str, expected: str) -> None:
    done = harness(tmp_path, "plan", *words.split())
    assert done.code != 0
    assert done.out == ""
    assert expected in done.err
