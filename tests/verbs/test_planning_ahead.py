"""`harness plan` before any run: from the spread of published runs, in both directions.

For: harness.verbs.plan_typical.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness as reasoning_harness
from harness.asking.options import PlanOptions
from harness.core.errors import UsageError
from harness.scoring.published import load_published
from harness.scoring.stats_differences import (
    SampleSpread,
    least_question_difference,
    planned_detection,
    samples_to_detect,
    smallest_difference,
)
from harness.verbs.plan import Planned, plan
from harness.verbs.plan_sources import sources_of
from harness.verbs.plan_typical import typical_spread
from tests.reports.run_folders import write_run
from tests.system.command import harness


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with no run in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned_of(word: str, **options: Any) -> Planned:
    """The plan of one benchmark with a number of samples."""
    (planned,) = plan(sources_of([word]), PlanOptions.of(**options))
    return planned


def smallest_of(word: str, **options: Any) -> float:
    """The smallest difference that these samples find."""
    difference = planned_of(word, **options).needed.smallest_difference
    assert difference is not None
    return difference


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


def spread_of(benchmark: str) -> SampleSpread:
    typical = typical_spread(benchmark)
    return typical.spread(typical.variance)


def test_both_directions_agree(empty: Path) -> None:
    answer = planned_of("aime24:64")
    difference = smallest_of("aime24:64")
    assert samples_to_detect(spread_of("aime24"), difference * 1.0001, None, 2) == 64
    assert samples_to_detect(spread_of("aime24"), difference * 0.99, None, 2) != 64
    assert answer.needed.run == ""
    assert answer.wide is not None
    assert smallest_of("aime24:16") > 1.9 * difference
    assert smallest_of("aime24:64", other_samples=4) > 2 * difference


def test_the_command_answers_both_and_never_names_two_numbers(empty: Path) -> None:
    done = harness(empty, "plan", "aime24:64")
    assert done.code == 0, done.err
    assert done.out.startswith(
        "aime24: 64 samples a question in each of two runs find a difference of 2.8 points on the same 30"
    )
    assert "  2 points: 114 samples a question" in done.out
    back = harness(empty, "plan", "aime24", "--detect", "2")
    assert "aime24: 114 samples a question in each of two runs find a difference of 2 points" in back.out
    assert "the spread is the median of 65 published models on this benchmark" in back.out
    assert "64:2" not in done.out + back.out
    # One pilot of all benchmarks, for one plan and their mean.
    pilots = {
        "aime24:64,aime25:16 --versus 8": "aime24:64,aime25:16 … --pilot && harness score results/… && harness plan "
        "aime24:64 aime25:16 --versus 8",
        "aime24 aime25 --detect 9": "aime24:10,aime25:10 … --pilot && harness score results/… && harness plan aime24 "
        "aime25 --detect 9",
        "aime24:64 --margin 2": "aime24:84 … --pilot && harness score results/… && harness plan aime24:64 --margin 2",
    }
    for typed, expected in pilots.items():
        both = harness(empty, "plan", *typed.split()).out
        assert f"cost of the run:\n  harness run {expected}\n" in both
        assert both.count("harness run") == 1


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
        (
            "efficient-reasoning:8",
            "efficient-reasoning is a suite, and a plan takes benchmarks: give gsm8k:8 math500:8 aime24:8 limo:8\n",
        ),
        ("seer4 --detect 2", "seer4 is a suite, and a plan takes benchmarks: give aime24 aime25 math500 "),
        ("aime24 --json", "or the loss to rule out, as --margin 2; or a number of samples"),
        ("aime24:64 --accuracy 0.02", "type 2 for 2 points"),
        ("aime24:64 aime24:16", "aime24 is given twice, as aime24:64 and as aime24:16: a plan is for one comparison"),
        ("aime24:64,aime-2024:16", "aime24 is given twice"),
    ],
)
def test_what_is_no_plan_is_refused(empty: Path, words: str, expected: str) -> None:
    done = harness(empty, "plan", *words.split())
    assert done.code != 0
    assert done.out == ""
    assert expected in done.err


def test_the_name_of_a_run_in_results_is_answered_with_its_path(empty: Path) -> None:
    write_run(empty / "results" / "base")
    write_run(empty / "results" / "demo")
    for typed in ("base", "base:16"):
        refused = harness(empty, "plan", typed, "--detect", "2")
        assert (refused.code, refused.out) == (2, "")
        assert f"base is no benchmark. Did you mean the run results/{typed}?\n" in refused.err
    # A benchmark's name stays one, though a run and a suite are called that, too.
    assert "demo: " in harness(empty, "plan", "demo:16").out


@pytest.mark.parametrize(
    ("words", "least", "other"),
    [
        ("--versus 4", "10", "--versus 66"),
        ("--published-samples 1 --accuracy 80", "23.2", "--published-samples 49"),
        ("--versus 8 aime25", "7.3", "--versus 81"),
    ],
)
def test_a_difference_that_no_number_of_samples_finds_is_answered_with_what_is_possible(
    empty: Path, words: str, least: str, other: str
) -> None:
    stored, number, *more = words.split()
    done = harness(empty, "plan", "aime24", "--detect", "2", *words.split())
    assert f"the smallest difference that some number finds is {least} points" in done.out
    assert f"plan a larger difference (--detect {least})" in done.out
    assert other in done.out
    stored_side = "published score" if stored == "--published-samples" else "stored samples"
    assert f"Two new runs on the same questions, without the {stored_side}, find it: harness plan" in done.out
    typed = f"harness plan aime24{' aime25' * ('aime25' in words)} --detect 2{' --accuracy 80' * ('80' in words)}\n"
    assert done.out.endswith(typed)
    # What it says to type is possible.
    for possible in ([stored, number, "--detect", least], [*other.split(), "--detect", "2"]):
        again = harness(empty, "plan", "aime24", *possible, *more)
        assert "aime24: no number" not in again.out, possible
    assert "no number" not in harness(empty, *typed.split()[1:]).out
    # Wrong twin: a difference that some number finds.
    assert "plan a larger" not in harness(empty, "plan", "aime24", "--detect", "30", stored, number, *more).out


def test_a_plan_names_no_more_samples_than_a_run_takes(empty: Path) -> None:
    (empty / "own.jsonl").write_text("".join(f'{{"question": "{n} + 1?", "answer": "{n + 1}"}}\n' for n in range(4)))
    for flag, verb in (("--detect", "finds"), ("--margin", "shows a margin of")):
        done = harness(empty, "plan", "own.jsonl", flag, "0.11")
        assert f"own: no number of samples up to 100,000 a question {verb} 0.11 points; the smallest" in done.out
        assert "harness run" not in done.out
        assert "stored" not in done.out
        least = re.search(rf"plan a larger \w+ \({flag} ([\d.]+)\)", done.out)
        assert least is not None
        possible = re.search(r"own: ([\d,]+) samples", harness(empty, "plan", "own.jsonl", flag, least[1]).out)
        assert possible is not None
        assert 80_000 < int(possible[1].replace(",", "")) <= 100_000


def test_a_margin_is_planned_in_both_directions_and_for_several_benchmarks(empty: Path) -> None:
    (needed,) = json.loads(harness(empty, "plan", "aime24", "--margin", "1", "--json").out)
    size = needed["samples"]
    (back,) = json.loads(harness(empty, "plan", f"aime24:{size}", "--margin", "1", "--json").out)
    (fewer,) = json.loads(harness(empty, "plan", f"aime24:{size - 1}", "--margin", "1", "--json").out)
    assert back["smallest_difference"] <= 0.01 < fewer["smallest_difference"]
    # A margin is one test, and equally good models vary alike: fewer samples than a difference needs.
    assert size < planned_of("aime24", detect=1).needed.samples
    assert size == reasoning_harness.plan("aime24", margin=1)[0].samples
    done = harness(empty, "plan", "aime24:64,math500:4", "--margin", "1")
    assert 'show "not worse by 1 point or more" on the same 30 questions in 80 % of repetitions, if both' in done.out
    assert 'mean of the 2 benchmarks: these samples show "not worse by' in done.out
    assert done.out.count("new questions") == done.out.count("other questions") == 0
    assert "harness plan aime24:64 math500:4 --margin 1" in done.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--margin 1 --detect 1", "give one of the two"),
        ("--margin 1 --published-samples 4", "leave --published-samples out"),
        ("--margin 0", "greater than 0"),
    ],
)
def test_a_margin_beside_what_it_cannot_go_with_is_refused(empty: Path, words: str, expected: str) -> None:
    refused = harness(empty, "plan", "aime24:64", *words.split())
    assert refused.code == 2
    assert expected in " ".join(refused.err.split())


def test_both_directions_say_once_whose_spread_it_is(empty: Path) -> None:
    both = harness(empty, "plan", "aime24:64", "--detect", "2").out
    assert both.count("the spread is the median of 65 published models") == both.count("--pilot") == 1
    assert "aime24: 114 samples a question in each of two runs find a difference of 2 points" in both
    alone = harness(empty, "plan", "aime24", "--detect", "2").out
    assert alone.count("the spread is the median of 65 published models") == alone.count("--pilot") == 1


def test_a_plan_says_how_much_more_several_candidates_take(empty: Path) -> None:
    done = harness(empty, "plan", "aime24:64")
    assert "has 3 (or 6) candidates, it takes 1.3 (1.4) times the samples, or shows 1.13 (1.20) times" in done.out
    # A margin is one p value for each candidate, not two.
    assert "takes 1.3 (1.5) times the samples" in harness(empty, "plan", "aime24:64", "--margin", "3").out
    assert "candidates" not in harness(empty, "plan", "aime24:64", "--published-samples", "4").out
    of_two = harness(empty, "plan", "aime24:64", "aime25:64").out
    assert "prints the mean if each of the two runs has all of them" in of_two


def test_a_number_of_samples_that_stands_alone_is_answered_with_its_place(empty: Path) -> None:
    refused = harness(empty, "plan", "aime24", "16")
    assert refused.code == 2
    assert "16 is no benchmark: a number of samples stands behind the name, as in aime24:16" in refused.err
    for before, number in itertools.product(
        ("aime24", "aime24:", "aime24:64", "aime24:0", "aime24:x", ":"), (8, 0, 10**9)
    ):
        for words in ([before, str(number)], [f"{before},{number}"]):
            with pytest.raises(UsageError, match=f"^{number} is no benchmark") as error:
                sources_of(words)
            (example,) = sources_of([str(error.value).rpartition(" ")[2]])
            own = 64 if before == "aime24:64" or number != 8 else 8
            assert (example.name, example.samples) == ("aime24", own), (words, example)


def test_several_benchmarks_are_planned_in_their_order(empty: Path) -> None:
    spaces, commas = (harness(empty, "plan", *words) for words in (["aime25:16", "aime24:64"], ["aime25:16,aime24:64"]))
    assert spaces.out == commas.out
    assert spaces.out.index("aime25: 16 samples") < spaces.out.index("aime24: 64 samples")
    assert "The 2 benchmarks are planned for one `harness compare`" in spaces.out
    both = json.loads(harness(empty, "plan", "aime25", "aime24", "--detect", "2", "--json").out)
    assert [plan["benchmark"] for plan in both] == ["aime25", "aime24"]


def test_benchmarks_that_are_compared_together_need_the_samples_of_their_corrected_tests(empty: Path) -> None:
    """Two p values of each benchmark, and one of their mean."""
    for words, n_tests in ((["aime24"], 2), (["aime24", "aime25"], 5), (["aime24", "aime25", "math500"], 7)):
        planned = json.loads(harness(empty, "plan", *words, "--detect", "2", "--json").out)[0]
        assert planned["samples"] == samples_to_detect(spread_of("aime24"), 0.02, None, n_tests)


def test_the_mean_of_two_benchmarks_needs_fewer_samples_than_each_of_them(empty: Path) -> None:
    done = harness(empty, "plan", "aime24:64,aime25:64", "--detect", "2")
    first, second = json.loads(harness(empty, "plan", "aime24:64", "aime25:64", "--detect", "2", "--json").out)
    assert first["smallest_difference_of_mean"] == second["smallest_difference_of_mean"]
    parts = [planned_detection(spread_of(name), 64) for name in ("aime24", "aime25")]
    variance, growth = sum(one.variance for one in parts) / 4, sum(one.growth for one in parts) / 4
    assert first["smallest_difference_of_mean"] == pytest.approx(float(smallest_difference(variance, growth, 5)))
    assert first["samples_of_mean"] < 0.6 * first["samples"]
    assert "mean of the 2 benchmarks: these samples find a difference of 2.1 points" in done.out
    assert f"mean of the 2 benchmarks: {first['samples_of_mean']} samples a question of each find" in done.out
    mixed = json.loads(harness(empty, "plan", "aime24:64", "aime25", "--detect", "2", "--json").out)
    assert mixed[0]["smallest_difference_of_mean"] is None
    assert mixed[0]["samples_of_mean"] == first["samples_of_mean"]
    (alone,) = json.loads(harness(empty, "plan", "aime24:64", "--detect", "2", "--json").out)
    assert (alone["samples_of_mean"], alone["smallest_difference_of_mean"]) == (None, None)


@pytest.mark.parametrize("given", ["aime24:64,aime25:64", ["aime24:64", Path("aime25:64")]], ids=["commas", "list"])
def test_python_plans_several_benchmarks_as_the_command_does(empty: Path, given: Any) -> None:
    printed = json.loads(harness(empty, "plan", "aime24:64,aime25:64", "--detect", "2", "--json").out)
    planned = reasoning_harness.plan(given, 2)
    assert [one.samples for one in planned] == [one["samples"] for one in printed]
    assert [one.smallest_difference for one in planned] == [one["smallest_difference"] for one in printed]
    assert [one.samples_of_mean for one in planned] == [one["samples_of_mean"] for one in printed]


def test_a_number_of_samples_needs_no_difference_to_find(empty: Path) -> None:
    (printed,) = json.loads(harness(empty, "plan", "aime24:64", "--json").out)
    (planned,) = reasoning_harness.plan("aime24:64")
    assert printed["smallest_difference"] == planned.smallest_difference == smallest_of("aime24:64")
    assert (printed["samples"], planned.samples) == (None, None)
    with pytest.raises(UsageError, match="give the difference to find, as detect=2"):
        reasoning_harness.plan("aime24")


def test_an_accuracy_near_100_percent_has_at_least_the_spread_that_its_questions_must_have(empty: Path) -> None:
    typical = typical_spread("aime24", 0.98)
    assert typical.variance < typical.spread(typical.variance).variance == pytest.approx(0.4 * 0.6 / 30)
    assert typical_spread("aime24", 0.5).spread(0.07).variance == 0.07


def test_an_accuracy_below_one_percent_is_asked_about(empty: Path) -> None:
    done = harness(empty, "plan", "aime24:64", "--accuracy", "0.8")
    assert done.code == 0
    assert "0.8 means 0.8 %: for 80 % give --accuracy 80" in " ".join(done.err.split())
    assert harness(empty, "plan", "aime24:64", "--accuracy", "80").err == ""


def test_few_samples_say_how_much_of_the_difference_is_caution(empty: Path) -> None:
    """A worse model may vary more: near 100 % that makes most of the planned difference."""
    words = "a model whose samples do not is found from about "
    done = harness(empty, "plan", "aime24:4", "--accuracy", "95")
    assert done.out.startswith("aime24: 4 samples a question in each of two runs find a difference of 10.9 points")
    assert f"{words}6 points on" in done.out
    assert words not in harness(empty, "plan", "aime24:64").out


def test_what_other_questions_can_never_show_is_said(empty: Path) -> None:
    for words in (["aime24:64"], ["aime24", "--detect", "2"]):
        assert "30 questions never show a difference below 4.8 points" in harness(empty, "plan", *words).out
    assert (
        "below 4.8 points; one of 2 points takes at least 71 questions"
        in harness(empty, "plan", "aime24", "--detect", "2").out
    )
    assert "takes at least" not in harness(empty, "plan", "aime24", "--detect", "10").out
    (planned,) = reasoning_harness.plan("math500:4")
    assert planned.least_questions <= 500
    assert planned.least_on_new_questions == least_question_difference(500)


def test_one_sample_of_each_question_is_said_to_show_less_in_the_comparison(empty: Path) -> None:
    words = "`harness compare` of such runs may state a larger difference"
    assert words in harness(empty, "plan", "aime24:1").out
    assert words in harness(empty, "plan", "aime24:64", "--versus", "1").out
    assert words not in harness(empty, "plan", "aime24:2").out


def test_json_and_python_answer_both_directions(empty: Path) -> None:
    (printed,) = json.loads(harness(empty, "plan", "aime24:64", "--detect", "2", "--json").out)
    assert (printed["given_samples"], printed["basis"]) == (64, "models on this benchmark")
    assert math.isclose(printed["smallest_difference"], smallest_of("aime24:64"))
    (planned,) = reasoning_harness.plan("aime24:64", 2)
    assert planned.smallest_difference == smallest_of("aime24:64")
    (without,) = reasoning_harness.plan("aime24", 2)
    assert (without.given_samples, without.smallest_difference) == (None, None)


def test_an_accuracy_that_is_known_scales_the_published_spread(empty: Path) -> None:
    middle, high = (typical_spread("aime24", accuracy).variance for accuracy in (0.5, 0.95))
    assert math.isclose(high / middle, 0.95 * 0.05 / 0.25)
    assert smallest_of("aime24:64", accuracy=95) < smallest_of("aime24:64", accuracy=50)
    done = harness(empty, "plan", "gsm8k", "--detect", "2", "--accuracy", "91")
    assert "(accuracy 91.0 %, as given)" in done.out
    assert (
        "accuracy 50.0 % assumed, where the spread is largest" in harness(empty, "plan", "gsm8k", "--detect", "2").out
    )


def test_a_card_of_ones_own_is_planned_by_its_path(empty: Path) -> None:
    (empty / "own.yaml").write_text(
        "title: Own\nsource: {kind: file, path: rows.jsonl}\ncolumns: {question: question, answer: answer}\n"
        "questions: 3\n"
    )
    done = harness(empty, "plan", "./own.yaml:64", "--detect", "5")
    assert done.code == 0, done.err
    assert not (empty / "rows.jsonl").exists(), "the questions need not be written yet"
    assert "harness run ./own.yaml:260 … --pilot && harness score results/… && harness plan ./own.yaml:64" in done.out
    assert done.out.startswith("own: 64 samples a question in each of two runs find a difference of ")
    # Without a number the questions of the card's file are counted, and its wrong twins: no file, a file elsewhere.
    (empty / "set.yaml").write_text((empty / "own.yaml").read_text().replace("questions: 3\n", ""))
    assert "the card ./set.yaml does not state its number of questions: write `questions: N` into" in (
        harness(empty, "plan", "./set.yaml:64").err
    )
    (empty / "rows.jsonl").write_text("".join(f'{{"question": "{n} + 1?", "answer": "{n + 1}"}}\n' for n in range(41)))
    assert " on the same 41 questions " in harness(empty, "plan", "./set.yaml:64").out
    (empty / "set.yaml").write_text((empty / "set.yaml").read_text().replace("rows.jsonl", "hf://datasets/me/mine"))
    assert "write `questions: N` into the card" in harness(empty, "plan", "./set.yaml:64").err


def test_a_file_of_ones_own_questions_is_planned_before_any_run(empty: Path) -> None:
    (empty / "my50.jsonl").write_text("".join(f'{{"problem": "{n} + 1?", "answer": "{n + 1}"}}\n' for n in range(50)))
    done = harness(empty, "plan", "my50.jsonl:16")
    assert done.code == 0, done.err
    assert done.out.startswith("my50: 16 samples a question in each of two runs find a difference of ")
    assert " on the same 50 questions " in done.out
    assert "harness run --data my50.jsonl --samples 16 … --pilot" in done.out
    # A pilot of a run of one sample would show no spread.
    one = harness(empty, "plan", "my50.jsonl:1", "aime24:1").out
    assert (
        "harness run aime24:2 … --out results/… && harness run --data my50.jsonl --samples 2 … --out results/… && "
        "harness score results/… && harness plan my50.jsonl:1 aime24:1\n"
    ) in one
    own_folder = "A file has a run folder of its own: one folder of all benchmarks needs a card for it"
    assert own_folder in one
    assert own_folder not in harness(empty, "plan", "aime25:1", "aime24:1").out + done.out
    assert harness(empty, "plan", "my50.jsonl", "--detect", "5", "--accuracy", "80").code == 0
    # The wrong twin: a file with replies is scored first.
    (empty / "theirs.jsonl").write_text('{"problem": "1 + 1?", "answer": "2", "response": "It is 2."}\n')
    refused = harness(empty, "plan", "theirs.jsonl:16")
    assert (refused.code, refused.out) == (3, "")
    assert "theirs.jsonl is not scored yet" in refused.err
    # Columns of other names are named, with the cure.
    for columns, expected in {
        (
            "aufgabe_text",
            "loesung_wert",
        ): "the question to 'problem' and the column of the reference answer to 'answer'; or",
        ("problem", "loesung_wert"): "its columns are problem, loesung_wert. Rename the column of the ",
        (
            "aufgabe_text",
            "answer",
        ): "no column has a usual name of the question; its columns are aufgabe_text, answer. ",
    }.items():
        (empty / "odd.jsonl").write_text(json.dumps(dict.fromkeys(columns, "1 + 1?")) + "\n")
        odd = harness(empty, "plan", "odd.jsonl:16")
        assert (odd.code, odd.out) == (2, "")
        assert expected in odd.err
        assert "states `questions: N`" in odd.err


def test_scored_outputs_of_another_tool_are_planned_without_a_forecast(empty: Path) -> None:
    rows = (
        {"prompt": f"What is {i}+1?", "answer": str(i + 1), "gen": [rf"\boxed{{{i + 1}}}", r"\boxed{0}"]}
        for i in range(9)
    )
    (empty / "theirs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    refused = harness(empty, "plan", "theirs.jsonl", "--detect", "9").err
    assert "not scored yet" in refused
    assert "If it holds questions, take a run of them by `harness run`, with two samples of each" in refused
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
    answer = planned_of("sums:8")
    assert (answer.needed.run, answer.wide, answer.typical) == (str(empty / "results" / "first"), None, None)
    assert planned_of("results/first:8").needed == answer.needed
    done = harness(empty, "plan", "results/first:8")
    assert done.out.startswith("sums: 8 samples a question"), done.err
    with pytest.raises(UsageError):
        planned_of("nothing:8")
    # A second model's run of it: the comparison is planned from one of them.
    shutil.copytree(run, empty / "results" / "second")
    with pytest.raises(UsageError, match="sums is given twice, as results/first:8 and as results/second:8"):
        plan(sources_of(["results/first:8", "results/second:8"]), PlanOptions())


def test_an_alias_is_the_benchmark_itself_whose_runs_are_looked_for(empty: Path) -> None:
    assert sources_of(["aime-2024:8", "aime2024"]) == sources_of(["aime24:8", "aime24"])
    # A run stored under the very name that was given goes before a card's alias.
    (empty / "results" / "mine" / "aime2024").mkdir(parents=True)
    (empty / "results" / "mine" / "manifest.json").write_text("{}")
    assert sources_of(["aime2024"])[0].name == "aime2024"


def test_a_printed_difference_is_one_that_the_samples_find(empty: Path) -> None:
    """It is rounded up: the plan for the printed difference never asks for more samples."""
    for samples in range(1, 200, 7):
        printed = float(harness(empty, "plan", f"aime24:{samples}").out.split("difference of ")[1].split()[0])
        needed = samples_to_detect(spread_of("aime24"), printed / 100, None, 2)
        assert needed is not None
        assert needed <= samples
        assert printed - 0.1 < 100 * smallest_of(f"aime24:{samples}") <= printed


def test_a_pilot_says_how_uncertain_its_plan_is_and_what_both_runs_take(tmp_path: Path) -> None:
    stored = Path(__file__).parents[1] / "pins" / "stored"
    run = next(path.parent for path in stored.rglob("manifest.json") if path.parent.name == "first")
    shutil.copytree(run, tmp_path / "first")
    done = harness(tmp_path, "plan", "first:8", "--price-in", "1", "--price-out", "10")
    assert done.code == 0, done.err
    assert "by chance in its samples, the difference is between" in done.out
    write_run(tmp_path / "many", benchmarks=[("demo", 60, 40)])
    many = harness(tmp_path, "plan", "many:20000")
    assert "by chance in its samples, the difference varies by less than 0.1 points around" in many.out
    assert "to extend this run to that size:" in done.out
    assert "for the second run, from its beginning (the command of this run with another --out" in done.out
    # The command that extends the run, and its wrong twin: a run that has as many samples.
    prices = "--price-in 1 --price-out 10"
    command = rf"    harness run --data QUESTIONS_FILE --samples 8 .*--out first {prices} && harness score first\n"
    assert len(re.findall(command, done.out)) == 1
    costs = [float(usd) for usd in re.findall(r"about ([\d.]+) USD", done.out)]
    assert len(costs) == 3
    assert costs[2] == pytest.approx(costs[0] + costs[1], abs=0.011)
    assert f"  both together: about {costs[2]:.2f} USD\n" in done.out
    enough = harness(tmp_path, "plan", "first:2").out
    assert "this run has that size already" in enough
    assert "both together" not in enough
    assert "harness run" not in enough
    assert done.out.count("cost: about") == 2
    (eight,) = reasoning_harness.plan(tmp_path / "first:8")
    assert eight.forecast is not None
    assert eight.second_forecast is not None
    assert eight.second_forecast.n_samples == 8 * eight.n_questions > eight.forecast.n_samples > 0
    assert eight.smallest_difference is not None
    assert eight.difference_range is not None
    assert eight.difference_range[0] < eight.smallest_difference <= eight.difference_range[1]
    (needed,) = reasoning_harness.plan(tmp_path / "first", 20)
    assert needed.samples_range is not None
    few, many = needed.samples_range
    assert many is not None
    assert few < needed.samples <= many  # type: ignore[operator]
    assert f"the number is between {few} and {many}" in harness(tmp_path, "plan", "first", "--detect", "20").out
    for points in ("20", "1"):
        versus = harness(tmp_path, "plan", "first", "--detect", points, "--versus", "8").out
        assert f"  {tmp_path}/first is taken as the new run; the stored one has 8 samples a question\n" in versus
    assert (
        "is taken as the new run" not in done.out + harness(tmp_path, "plan", "first:8", "--published-samples", "8").out
    )
    (beside,) = reasoning_harness.plan(tmp_path / "first:8", other_samples=64)
    assert beside.second_forecast is None
