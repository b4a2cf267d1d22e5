"""Near misses."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.benchmarks.card import from_mapping
from harness.core.errors import UsageError
from harness.core.records import GradeRules
from harness.grading import grade
from harness.runs import grades as grade_file
from harness.runs import questions as question_file
from harness.runs.line_file import write_lines
from harness.scoring.benchmark_score import score_benchmark
from tests.grading.given import question, sample
from tests.reports.run_folders import write_run


def missed(reference: str, response: str, rules: GradeRules | None = None) -> tuple[str, str | None]:
    """(verdict, near miss)."""
    graded = grade(question(reference, rules=rules or GradeRules()), sample(response))
    return graded.verdict, graded.near_miss


@pytest.mark.parametrize(
    ("reference", "answer", "near"),
    [
        ("12.55", r"\frac{113}{9}", None),
        ("6.5", r"\sqrt{41.75}", "rounded"),
        ("6.46", r"\sqrt{42}", None),
        (r"41\%", r"\sqrt2-1", None),
        (r"4.1\%", r"\frac{\sqrt2-1}{10}", "rounded"),
        ("0.46", r"\frac{11}{24}", "rounded"),
        ("0.458", r"\frac{10}{24}", None),
        ("0.458", "0.46", None),
        (r"5\text{ cm}", r"5\text{ m}", "unit"),
        (r"5\text{ cm}", r"6\text{ m}", None),
        (r"5\text{ dollars}", r"5\text{ cents}", "unit"),
        (r"5^\circ", r"5\%", "unit"),
        ("7", "8", None),
    ],
)
def test_a_wrong_answer_may_miss_by_little(reference: str, answer: str, near: str | None) -> None:
    assert missed(reference, rf"\boxed{{{answer}}}") == ("wrong", near)


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("12.56", r"\frac{113}{9}"), ("6.46", r"\sqrt{41.75}"), (r"41.4\%", r"\sqrt2-1"), ("0.458", r"\frac{11}{24}")],
)
def test_an_answer_that_rounds_to_three_digits_of_the_reference_is_undecided(reference: str, answer: str) -> None:
    assert missed(reference, rf"\boxed{{{answer}}}") == ("undecided", None)


def test_a_rounded_reference_accepts_its_exact_value_where_the_card_says_so() -> None:
    rules = GradeRules(round_to_reference=True)
    assert missed("0.458", r"\boxed{\frac{11}{24}}", rules) == ("correct", None)
    assert missed("0.458", r"\boxed{\frac{10}{24}}", rules) == ("wrong", None)


def test_another_box_with_the_right_answer_is_a_near_miss() -> None:
    assert missed("7", r"\boxed{7}. No, it is \boxed{8}.") == ("wrong", "another box")
    assert missed("7", r"\boxed{6}. No, it is \boxed{8}.") == ("wrong", None)
    assert missed("7", r"\boxed{8}. No, it is \boxed{7}.") == ("correct", None)


def test_only_a_wrong_answer_is_a_near_miss() -> None:
    asked = question("C", kind="choice", choices=("1", "3", "2", "4"))
    undecided = grade(asked, sample("猜测对应选项 C。\n\n\\boxed{2}"))
    assert (undecided.verdict, undecided.near_miss) == ("undecided", None)
    assert missed("7", r"<think>\boxed{7} is a guess") == ("no_answer", None)


def test_a_card_is_told_what_stands_in_place_of_a_required_form() -> None:
    columns = {"question": "q", "answer": "a"}
    card = {"name": "n", "title": "N", "source": {"kind": "file", "path": "x.jsonl"}, "columns": columns}
    with pytest.raises(UsageError, match="your own verifier"):
        from_mapping({**card, "rules": {"form": "factored"}}, "card.yaml")


def test_a_score_counts_near_misses(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    demo = folder.benchmark("demo")
    questions = question_file.read(demo)
    stored = grade_file.read(demo)
    wrong = msgspec.structs.replace(stored[0], verdict="wrong", extracted=r"\frac{11}{24}", near_miss="rounded")
    write_lines(demo.grades, [wrong, *stored[1:]])
    score = score_benchmark(questions, grade_file.read(demo), 4)
    assert score.near_misses == {"rounded": 1}
    assert "1 wrong answer is a near miss: the exact value of a rounded reference" in score.sentences
