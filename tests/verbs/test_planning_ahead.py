"""`harness plan` before any run: from the spread of published runs, in both directions.

For: harness.verbs.plan_typical.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness as reasoning_harness
from harness.asking.options import PlanOptions
from harness.core.errors import UsageError
from harness.scoring.differences import samples_to_detect
from harness.scoring.published import load_published
from harness.verbs.plan import Detectable, detectable, sources_of
from harness.verbs.plan_typical import typical_spread
from tests.system.command import harness


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with no run in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def detectable_of(word: str, **options: Any) -> list[Detectable]:
    (source,) = sources_of([word])
    return detectable(source, PlanOptions.of(detect=1, **options))


def test_the_typical_spread_is_the_median_of_published_runs() -> None:
    published = [
        score.run_deviation**2 * 30
        for score in load_published()
        if (score.benchmark, score.metric) == ("aime24", "pass@1") and score.run_deviation
    ]
    spread = typical_spread("aime24")
    assert spread.n_questions == 30
    assert math.isclose(spread.variance, float(np.median(published)))
    assert spread.variance < spread.wide <= 0.25 * 1.3
    assert not spread.of_all
    assert typical_spread("hmmt_feb25").of_all, "nobody published deviations of it"


def test_both_directions_agree(empty: Path) -> None:
    (answer,) = detectable_of("aime24:64")
    spread = typical_spread("aime24")
    assert samples_to_detect(spread.variance, 30, answer.difference * 1.0001, None, 2) == 64
    assert samples_to_detect(spread.variance, 30, answer.difference * 0.99, None, 2) != 64
    assert answer.run is None
    assert answer.wide is not None
    assert detectable_of("aime24:16")[0].difference > 1.9 * answer.difference
    assert detectable_of("aime24:64", other_samples=4)[0].difference > 2 * answer.difference


def test_the_command_answers_both_and_never_names_two_numbers(empty: Path) -> None:
    done = harness(empty, "plan", "aime24:64")
    assert done.code == 0, done.err
    assert done.out.startswith(
        "aime24: 64 samples a question in each of two runs find a difference of 2.6 points on the same 30"
    )
    assert "  2 points: 101 samples a question" in done.out
    back = harness(empty, "plan", "aime24", "--detect", "2")
    assert "aime24: 101 samples a question in each of two runs find a difference of 2 points" in back.out
    assert "the spread is the median of 65 published models on this benchmark" in back.out
    assert "64:2" not in done.out + back.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("aime24", "or a number of samples behind the name, as in aime24:64"),
        ("aime24:64 aime25", "or a number of samples behind the name, as in aime25:64"),
        ("aime24:64:2", "one number of samples"),
        ("aime24:0", "one number of samples"),
        ("aime24:many", "aime24:many: expected a benchmark or a run, and one number of samples"),
        ("aime24:6.5", "one number of samples"),
        ("aime24:", "one number of samples"),
        ("aime,aime25:64", "unknown benchmark 'aime'"),
        ("nothing", "unknown benchmark 'nothing'"),
        ("nothing:4", "unknown benchmark 'nothing'"),
        ("results/nothing:4", "there is no run at"),
        ("aime24:64 --json", "give the difference to find, as --detect 2; --json prints the samples that it needs"),
        ("aime24:64 --detect 2 --price-out 2", "must be given together"),
        ("aime24:64 --accuracy 0.02", "type 2 for 2 points"),
    ],
)
def test_what_is_no_plan_is_refused(empty: Path, words: str, expected: str) -> None:
    done = harness(empty, "plan", *words.split())
    assert done.code != 0
    assert done.out == ""
    assert expected in done.err


def test_several_benchmarks_are_planned_in_their_order(empty: Path) -> None:
    spaces, commas = (harness(empty, "plan", *words) for words in (["aime25:16", "aime24:64"], ["aime25:16,aime24:64"]))
    assert spaces.out == commas.out
    assert spaces.out.index("aime25: 16 samples") < spaces.out.index("aime24: 64 samples")
    assert "The 2 benchmarks are planned for one `harness compare`" in spaces.out
    both = json.loads(harness(empty, "plan", "aime25", "aime24", "--detect", "2", "--json").out)
    assert [plan["benchmark"] for plan in both] == ["aime25", "aime24"]


def test_benchmarks_that_are_compared_together_need_the_samples_of_their_corrected_tests(empty: Path) -> None:
    spread = typical_spread("aime24")
    for words, n_tests in ((["aime24"], 2), (["aime24", "aime25"], 4), (["aime24", "aime25", "math500"], 6)):
        planned = json.loads(harness(empty, "plan", *words, "--detect", "2", "--json").out)[0]
        assert planned["samples"] == samples_to_detect(spread.variance, 30, 0.02, None, n_tests)


def test_json_and_python_answer_both_directions(empty: Path) -> None:
    (printed,) = json.loads(harness(empty, "plan", "aime24:64", "--detect", "2", "--json").out)
    (answer,) = detectable_of("aime24:64")
    assert (printed["given_samples"], printed["basis"]) == (64, "models on this benchmark")
    assert math.isclose(printed["smallest_difference"], answer.difference)
    (planned,) = reasoning_harness.plan("aime24:64", 2)
    assert planned.smallest_difference == answer.difference
    (without,) = reasoning_harness.plan("aime24", 2)
    assert (without.given_samples, without.smallest_difference) == (None, None)


def test_an_accuracy_that_is_known_scales_the_published_spread(empty: Path) -> None:
    middle, high = (detectable_of("aime24:64", accuracy=percent)[0].difference for percent in (50, 95))
    assert math.isclose(high / middle, math.sqrt(0.95 * 0.05 / 0.25))
    done = harness(empty, "plan", "gsm8k", "--detect", "2", "--accuracy", "91")
    assert "(accuracy 91.0 %, as given)" in done.out
    assert (
        "accuracy 50.0 % assumed, where the spread is largest" in harness(empty, "plan", "gsm8k", "--detect", "2").out
    )


def test_a_card_of_ones_own_is_planned_by_its_path(empty: Path) -> None:
    (empty / "rows.jsonl").write_text('{"question": "1+1", "answer": "2"}\n' * 3)
    (empty / "own.yaml").write_text(
        "title: Own\nsource: {kind: file, path: rows.jsonl}\ncolumns: {question: question, answer: answer}\n"
        "questions: 3\n"
    )
    done = harness(empty, "plan", "./own.yaml:64", "--detect", "5")
    assert done.code == 0, done.err
    assert done.out.startswith("own: 64 samples a question in each of two runs find a difference of ")


def test_scored_outputs_of_another_tool_are_planned_without_a_forecast(empty: Path) -> None:
    rows = (
        {"prompt": f"What is {i}+1?", "answer": str(i + 1), "gen": [rf"\boxed{{{i + 1}}}", r"\boxed{0}"]}
        for i in range(9)
    )
    (empty / "theirs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "not scored yet" in harness(empty, "plan", "theirs.jsonl", "--detect", "9").err
    scored = harness(empty, "score", "theirs.jsonl")
    assert scored.code == 0, scored.err
    done = harness(empty, "plan", "theirs.jsonl", "--detect", "9")
    assert done.code == 0, done.err
    assert "(accuracy about 50.0 %)" in done.out
    assert "so time and cost are unknown" in done.out


def test_a_run_of_ones_own_goes_before_the_published_ones(empty: Path) -> None:
    stored = Path(__file__).parents[1] / "pins" / "stored"
    (run,) = sorted(path.parent for path in stored.rglob("manifest.json") if path.parent.name == "first")[:1] or [None]
    if run is None:
        pytest.skip("no stored run")
    shutil.copytree(run, empty / "results" / "first")
    (answer,) = detectable_of("sums:8")
    assert (answer.run, answer.wide, answer.typical) == (str(empty / "results" / "first"), None, None)
    assert detectable_of("results/first:8") == [answer]
    done = harness(empty, "plan", "results/first:8")
    assert done.out.startswith("sums: 8 samples a question"), done.err
    with pytest.raises(UsageError):
        detectable_of("nothing:8")


def test_a_printed_difference_is_one_that_the_samples_find(empty: Path) -> None:
    """It is rounded up: the plan for the printed difference never asks for more samples."""
    for samples in range(1, 200, 7):
        printed = float(harness(empty, "plan", f"aime24:{samples}").out.split("difference of ")[1].split()[0])
        spread = typical_spread("aime24")
        needed = samples_to_detect(spread.variance, 30, printed / 100, None, 2)
        assert needed is not None
        assert needed <= samples
