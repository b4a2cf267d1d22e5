"""Tokens of right and wrong samples, the accuracy of what was finished, and the accuracy within a smaller budget.

For: harness.scoring.tokens, harness.scoring.workload.
"""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records import Sample, Usage
from harness.grading.find.stated import statements
from harness.presets.grading import GradingOptions
from harness.reports import to_csv
from harness.reports.report import report
from harness.runs import RunFolder
from harness.scoring import Score, score_benchmark
from harness.scoring.columns import numbers
from harness.scoring.cut_text import cut, tokens_until
from harness.scoring.pipeline import score_run
from tests.scoring.graded import grade, graded, question
from tests.scoring.test_scoring_endpoints import A, sample, stored
from tests.system.command import harness

kinds = st.sampled_from(["integer", "expression", "choice", "text"])


def scored(*lengths: tuple[str, int | None]) -> Score:
    """One question; a letter and the tokens of each sample."""
    questions, _ = graded(q1="")
    grades = [grade("q1", i, letter, completion_tokens=n) for i, (letter, n) in enumerate(lengths)]
    return score_benchmark(questions, grades, len(lengths))


def test_tokens_are_told_apart_by_right_and_wrong() -> None:
    score = scored(("c", 100), ("c", 300), ("w", 1000), ("n", 2000), ("c", None))
    assert score.tokens is not None
    assert score.tokens.completion is not None
    assert score.tokens.completion_right is not None
    assert score.tokens.completion_wrong is not None
    assert (score.tokens.completion.n, score.tokens.completion.mean, score.tokens.completion.largest) == (4, 850, 2000)
    assert (score.tokens.completion_right.mean, score.tokens.completion_right.p50) == (200, 100)
    assert (score.tokens.completion_wrong.p10, score.tokens.completion_wrong.p90) == (1000, 2000)
    assert score.tokens.reasoning is None  # no server stated them


def test_reasoning_tokens_come_from_the_samples(tmp_path: Path) -> None:
    samples = [
        msgspec.structs.replace(
            sample("q0", i, A, right=right), usage=Usage(completion_tokens=50, reasoning_tokens=thought)
        )
        for i, (right, thought) in enumerate([(True, 30), (False, 44), (True, None)])
    ]
    (score,) = score_run(stored(tmp_path, [question("q0")], samples, 3), GradingOptions(workers=1))
    assert score.tokens is not None
    assert score.tokens.reasoning is not None
    assert score.tokens.reasoning_right is not None
    assert (score.tokens.reasoning.n, score.tokens.reasoning.mean, score.tokens.reasoning_right.mean) == (2, 37, 30)
    assert "reasoning" in report([RunFolder(tmp_path)]).markdown()


def test_accuracy_of_finished_samples_leaves_the_cut_ones_out() -> None:
    questions, grades = graded(q1="ccww", q2="nnnn")
    grades = [msgspec.structs.replace(g, truncated=g.verdict != "correct") for g in grades]
    score = score_benchmark(questions, grades, 4)
    assert (score.accuracy, score.accuracy_finished) == (0.25, 1.0)
    none = score_benchmark(questions, [msgspec.structs.replace(g, truncated=True) for g in grades], 4)
    assert none.accuracy_finished is None
    assert none.accuracy_finished_intervals is None


def test_the_accuracy_of_finished_samples_has_the_interval_of_a_run_of_those_alone() -> None:
    questions, grades = graded(q1="ccwwcw", q2="cwcwcw", q3="wwwwcc")
    cut = [msgspec.structs.replace(g, truncated=g.sample_index >= 4) for g in grades]
    score = score_benchmark(questions, cut, 6)
    alone = score_benchmark(questions, [g for g in grades if g.sample_index < 4], 4)
    found = score.accuracy_finished_intervals
    assert found is not None
    assert (score.accuracy_finished, found.sampling_interval) == (alone.accuracy, alone.sampling_interval)
    assert found.question_interval == alone.question_interval
    assert found.sampling_interval != score.sampling_interval


def test_a_longer_reply_counts_as_wrong_within_a_budget() -> None:
    score = scored(("c", 200), ("c", 256), ("c", 257), ("w", 100), ("c", 900))
    found = {one.budget: (one.accuracy, one.cut) for one in score.budgets}
    assert found == {256: (0.4, 0.4), 512: (pytest.approx(0.6), 0.2), 1024: (pytest.approx(0.8), 0.0)}
    assert score.budgets[-1].accuracy == score.accuracy
    assert score.budgets[-1].sampling_interval == score.sampling_interval


def test_unknown_tokens_give_no_budgets() -> None:
    assert scored(("c", 200), ("c", None)).budgets == ()


def test_the_accuracy_within_a_budget_is_that_of_a_run_with_the_smaller_limit() -> None:
    """Replies of random length, right where the model is able; cut ones are wrong in the smaller run."""
    generator = random.Random(3)
    questions = [question(f"q{n}") for n in range(40)]
    drawn = [
        (q.question_id, i, generator.random() < n / 40, int(generator.lognormvariate(6, 1)))
        for n, q in enumerate(questions)
        for i in range(20)
    ]
    large = [grade(name, i, "c" if right else "w", completion_tokens=n) for name, i, right, n in drawn]
    small = [
        grade(name, i, "c" if right and n <= 512 else "n", completion_tokens=min(n, 512), truncated=n > 512)
        for name, i, right, n in drawn
    ]
    by_budget = {one.budget: one for one in score_benchmark(questions, large, 20).budgets}
    other = score_benchmark(questions, small, 20)
    assert by_budget[512].accuracy == other.accuracy
    assert by_budget[512].sampling_interval == other.sampling_interval
    assert by_budget[512].question_interval == other.question_interval


def test_every_format_holds_budgets_and_tokens(tmp_path: Path) -> None:
    samples = [
        msgspec.structs.replace(sample("q0", i, A), usage=Usage(completion_tokens=200 * (i + 1))) for i in range(3)
    ]
    run = stored(tmp_path, [question("q0")], samples, 3)
    (score,) = score_run(run, GradingOptions(workers=1))
    of_run = report([run])
    for document in (of_run.markdown(), of_run.html(), of_run.latex()):
        assert "Accuracy within a budget" in document
        assert "Tokens of a sample" in document
    (row,) = csv.DictReader(to_csv([("run", "m", score)]).splitlines())
    assert float(row["accuracy_within_256"]) == pytest.approx(1 / 3)
    assert (row["tokens_completion_mean"], row["tokens_completion_p50"]) == ("400.0", "400")


def long_reply(index: int, text: str, reasoning: str | None, tokens: int = 1000) -> Sample:
    """A reply of 1,000 tokens; the reference answer is 2."""
    one = sample("q0", index, A)
    return msgspec.structs.replace(one, text=text, reasoning=reasoning, usage=Usage(completion_tokens=tokens))


def test_a_reply_whose_answer_stands_early_is_right_also_when_it_is_cut(tmp_path: Path) -> None:
    answer = r"so \boxed{2}."
    samples = [
        long_reply(0, answer + " I check it" + "." * 89, None),  # stands within the first tenth of its text
        long_reply(1, "." * 90 + answer, None),  # at the end
        long_reply(2, answer, "." * 900),  # behind its reasoning
    ]
    (plain,) = score_run(stored(tmp_path / "plain", [question("q0")], samples, 3), GradingOptions(workers=1))
    assert [one.accuracy_of_cut_text for one in plain.budgets] == [None]
    samples.append(long_reply(3, answer, None, tokens=200))
    (score,) = score_run(
        stored(tmp_path / "cut", [question("q0")], samples, 4), GradingOptions(workers=1, cut_text=True)
    )
    found = {one.budget: (one.accuracy, one.accuracy_of_cut_text) for one in score.budgets}
    assert found == {256: (0.25, 0.5), 512: (0.25, 0.5), 1024: (1.0, 1.0)}
    assert "cut text graded" in report([RunFolder(tmp_path / "cut")]).markdown()


def test_a_cut_within_the_reasoning_leaves_no_text() -> None:
    whole = long_reply(0, "x" * 50, "y" * 50)
    early, late = cut(whole, 250), cut(whole, 750)
    assert early is not None
    assert late is not None
    assert (early.text, early.reasoning, early.finish_reason) == (None, "y" * 25, "length")
    assert (late.text, late.reasoning) == ("x" * 25, "y" * 50)
    assert cut(whole, 1000) is None
    assert cut(msgspec.structs.replace(whole, usage=Usage()), 10) is None


# The first right answer


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("so x = 204.", "204"),
        ("Thus the sum is 204. Wait", "204"),
        ("Answer: $204$", "204"),
        ("which gives 204 minutes because she walks on and on", "204"),
        (r"\(3 \cdot 68 = 204\)", "204"),
        (r"then \boxed{204} it is", "204"),
        ("所以答案是204。", "204"),
        ("**Answer:** 204", "204"),
    ],
)
def test_a_value_is_stated_behind_a_sign_or_a_word_and_in_a_box(text: str, value: str) -> None:
    (end,) = (one.end for one in statements(text, "integer") if one.answer == value)
    assert text[:end].rstrip("}").endswith(value)


@pytest.mark.parametrize("text", ["walks 204 km", "we have 204 minutes", "204", "x >= 2040"])
def test_a_number_that_is_only_named_is_not_stated(text: str) -> None:
    assert "204" not in [one.answer for one in statements(text, "integer")]


def test_each_value_stands_where_it_is_stated_first() -> None:
    text = "a = 3, b = 7; so a = 3."
    assert [(one.answer, text[: one.end]) for one in statements(text, "integer")] == [
        ("3", "a = 3"),
        ("7", "a = 3, b = 7"),
    ]


def test_a_letter_is_stated_as_a_choice_also_far_from_the_end() -> None:
    text = "The answer is (B). " + "Hmm. " * 5000 + "No: the answer is (C)."
    found = {one.answer: one.end for one in statements(text, "choice", "D")}
    assert 0 < found["B"] < 20 < found["C"]


def test_the_tokens_until_a_character_are_in_proportion_and_hidden_reasoning_comes_first() -> None:
    whole = long_reply(0, "x" * 50, "y" * 50)
    assert [tokens_until(whole, end) for end in (0, 50, 100)] == [0, 500, 1000]
    usage = Usage(completion_tokens=1000, reasoning_tokens=800)
    hidden = msgspec.structs.replace(whole, reasoning=None, usage=usage)
    assert [tokens_until(hidden, end) for end in (0, 25, 50)] == [800, 900, 1000]
    early, late = cut(hidden, 700), cut(hidden, 900)
    assert early is not None
    assert late is not None
    assert (early.text, late.text) == (None, "x" * 25)
    assert tokens_until(msgspec.structs.replace(whole, usage=Usage()), 5) is None


@pytest.mark.parametrize(
    ("text", "n_passed_over"), [("Removing 2 coins leaves the others.", 0), (r"x = 2. No: \boxed{3}", 1)]
)
def test_a_sentence_that_states_no_answer_has_passed_over_none(text: str, n_passed_over: int, tmp_path: Path) -> None:
    run = stored(tmp_path, [question("q0")], [long_reply(0, text, None), long_reply(1, r"\boxed{2}", None)], 2)
    (score,) = score_run(run, GradingOptions(workers=1, cut_text=True))
    assert score.first_right is not None
    assert (score.first_right.n_passed_over, score.first_right.n_not_right) == (n_passed_over, 1)


@pytest.mark.slow
def test_a_score_says_after_how_many_tokens_the_right_answer_first_stood(tmp_path: Path) -> None:
    answer = r"so \boxed{2}."
    samples = [
        long_reply(0, answer, "a" * 81 + "x = 2. " + "b" * 299),  # 86 of 400 characters: its reasoning said it early
        long_reply(1, "." * 87 + answer, None),  # at its end only
        long_reply(2, r"x = 2. No: \boxed{3}", None),  # passed over
        long_reply(3, r"\boxed{4}", None),
    ]
    run = stored(tmp_path / "run", [question("q0")], samples, 4)
    (plain,) = score_run(run, GradingOptions(workers=1))
    assert plain.first_right is None
    (score,) = score_run(run, GradingOptions(workers=1, cut_text=True))
    found = score.first_right
    assert found is not None
    assert (found.tokens.n, found.tokens.p10) == (2, pytest.approx(1000 * 86 / 400, abs=3))
    assert found.share == pytest.approx((0.215 + 0.99) / 2, abs=0.01)
    assert (found.n_passed_over, found.n_not_right) == (1, 2)
    assert {one.budget: one.accuracy_of_first_right for one in score.budgets} == {1024: 0.5}
    (budget,) = score.budgets
    row = numbers(score)
    for name, intervals in (
        ("first_right", budget.accuracy_of_first_right_intervals),
        ("cut_text", budget.accuracy_of_cut_text_intervals),
    ):
        assert intervals is not None
        assert intervals.sampling_interval is not None
        assert intervals.sampling_interval.low < 0.5 < intervals.sampling_interval.high
        assert row[f"accuracy_within_1024_{name}_sampling_low"] == intervals.sampling_interval.low
    assert "accuracy_within_1024_first_right_sampling_low" not in numbers(plain)
    assert "accuracy_within_1024_first_right_sampling_low" in to_csv([("run", "m", score)])
    of_run = report([run])
    for document in (of_run.markdown(), of_run.html(), of_run.latex()):
        assert "right answer first stands" in document
    (cells,) = csv.DictReader(of_run.csv().splitlines())
    assert (cells["first_right_tokens_n"], cells["first_right_n_passed_over"]) == ("2", "1")
    assert cells["accuracy_within_1024_first_right"] == "0.5"
    texts = {name for name, cell in cells.items() if cell and not cell.replace(".", "").replace("-", "").isdigit()}
    assert texts <= {"run", "model", "benchmark", "partial"}, "every other cell is a number"
    assert float(cells["tokens_completion_mean_sampling_low"]) <= float(cells["tokens_completion_mean"])


def test_within_smaller_budgets_a_right_answer_stood_no_later_than_its_reply_ended(tmp_path: Path) -> None:
    samples = [long_reply(i, r"x = 2. " + "c" * 90 * i + r"\boxed{2}", None, tokens=120 * (i + 1)) for i in range(6)]
    run = stored(tmp_path / "run", [question("q0")], samples, 6)
    (score,) = score_run(run, GradingOptions(workers=1, cut_text=True))
    by_budget = [(one.accuracy, one.accuracy_of_first_right) for one in score.budgets]
    assert by_budget[0] == (pytest.approx(2 / 6), 1.0)
    (plot,) = (plot for plot in report([run]).plots() if plot.name.endswith("budgets"))
    assert [row[plot.columns.index("first_right")] for row in plot.rows] == [stood for _, stood in by_budget]
    assert [row[plot.columns.index("cut_text")] for row in plot.rows] == [b.accuracy_of_cut_text for b in score.budgets]
    assert "Dotted" in plot.summary
    shown = harness(tmp_path, "score", "run", "--cut-text")
    assert "right answer first stands" in re.sub(r"\s+", " ", shown.out)
    assert "right answer first stands" not in re.sub(r"\s+", " ", harness(tmp_path, "score", "run").out)


PIECES = [
    "a",
    "1",
    "=",
    ":",
    "is ",
    " ",
    "为",
    "\\n",
    "\\",
    "boxed{",
    "}",
    "(",
    ")",
    "$",
    ".",
    "*",
    ";",
    "answer",
    "</think>",
    "A",
]


@given(st.lists(st.sampled_from(PIECES), max_size=80).map("".join), kinds)
def test_statements_of_any_text_stand_in_it_in_order(text: str, kind: str) -> None:
    found = statements(text, kind)
    ends = [one.end for one in found]
    assert ends == sorted(ends)
    assert all(0 < end <= len(text) for end in ends)
    assert len({one.answer for one in found}) == len(found)
