"""Near misses, and the forms in which an answer may be asked for."""

from __future__ import annotations

from math import gcd
from pathlib import Path

import msgspec
import pytest

from harness.benchmarks.card import from_mapping
from harness.core.errors import UsageError
from harness.core.records import Form, GradeRules
from harness.grading import grade
from harness.runs import grades as grade_file
from harness.runs import questions as question_file
from harness.runs.line_file import write_lines
from harness.scoring.score import score_benchmark
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


FORMS: list[tuple[Form, str, str, bool]] = [
    ("fraction", "1/2", r"\frac12", True),
    ("fraction", "1/2", r"\frac24", True),
    ("fraction", "1/2", "0.5", False),
    ("fraction", "3/2", r"1\frac12", False),
    ("fraction", "-3/2", r"-\frac32", True),
    ("fraction", "4", "4", True),
    ("decimal", "1/2", "0.5", True),
    ("decimal", "1/2", r"\frac12", False),
    ("decimal", "4", "4", True),
    ("simplest", "1/2", r"\frac12", True),
    ("simplest", "1/2", r"\frac24", False),
    ("simplest", r"2\sqrt2", r"2\sqrt{2}", True),
    ("simplest", r"2\sqrt2", r"\sqrt8", False),
    ("simplest", r"\frac{\sqrt2}{2}", r"\frac{\sqrt2}{2}", True),
    ("simplest", r"\frac{\sqrt2}{2}", r"\frac{1}{\sqrt2}", False),
    ("simplest", "6", r"2\cdot 3", False),
    ("simplest", "5", "2+3", False),
    ("simplest", r"1+\sqrt2", r"1+\sqrt2", True),
    ("simplest", "8", "2^3", False),
    ("simplest", "8:7", r"8 : 7", True),
    ("simplest", "8:7", "24:21", False),
    ("simplest", "8:7", "0.8:0.7", False),
    *(("simplest", "3:2", right, True) for right in ("3：2", "3/2", r"\frac{3}{2}")),
    *(("simplest", "3:2", wrong, False) for wrong in ("1.5", r"1\frac12", r"150\%", "6/4")),
    ("simplest", "3:1", "3:1", True),
    ("simplest", "3:1", "3/1", True),
    ("simplest", "3:1", "3", False),
    ("simplest", "3:2:1", "6:4:2", False),
    ("simplest", "a:b", "a:b", True),
    ("simplest", "x^2", "x^2", True),
    ("factored", "4(3-x)(3+x)", "4(3-x)(x+3)", True),
    ("factored", "4(3-x)(3+x)", "-4(x-3)(x+3)", True),
    ("factored", "4(3-x)(3+x)", "(6-2x)(6+2x)", False),
    ("factored", "4(3-x)(3+x)", "36-4x^2", False),
    ("factored", "(x-1)^2(x+2)", "(x+2)(1-x)^2", True),
    ("factored", "(x-1)^2(x+2)", "(x^2-2x+1)(x+2)", False),
    ("scientific", "12000", r"1.2\times 10^4", True),
    ("scientific", "1.2×10^4", "1.20×10^{4}", True),
    ("scientific", "1.2×10^4", "12000=1.2×10^4", True),
    ("scientific", "0.0005", "5×10^{-4}", True),
    ("scientific", "-12000", r"-1.2\cdot 10^4", True),
    ("scientific", "1.2×10^4", "12×10^3", False),
    ("scientific", "1.2×10^4", "0.12×10^5", False),
    ("scientific", "1.2×10^4", "12000", False),
    ("scientific", "1.2×10^4", "1.2×10000", False),
    ("scientific", "1.2×10^4", "10^4×1.2", False),
    ("scientific", "1.2×10^4", "1.2×10^{2+2}", False),
    ("scientific", "1.2×10^4", r"\frac65×10^4", False),
    ("scientific", "1000", "10^3", False),
    ("scientific", "1000", "1×10^3", True),
    ("expanded", "x^2-1", "x^2-1", True),
    ("expanded", "x^2-1", "(x-1)(x+1)", False),
    ("expanded", "x^2+2x+1", "(x+1)^2", False),
]


@pytest.mark.parametrize(("form", "reference", "answer", "right"), FORMS)
def test_only_a_card_can_ask_for_a_form(form: Form, reference: str, answer: str, right: bool) -> None:
    response = rf"\boxed{{{answer}}}"
    assert missed(reference, response) == ("correct", None)
    expected = ("correct", None) if right else ("wrong", "form")
    assert missed(reference, response, GradeRules(form=form)) == expected
    assert missed(reference, rf"\boxed{{{answer}+1}}", GradeRules(form=form)) == ("wrong", None)


def test_a_root_of_a_high_degree_needs_no_power_of_a_million_digits() -> None:
    root = r"\sqrt[1000000]{7}"
    assert missed(root, rf"\boxed{{{root}}}", GradeRules(form="simplest")) == ("correct", None)


def test_a_ratio_in_simplest_form_is_no_quotient() -> None:
    simplest = GradeRules(form="simplest")
    assert missed("3:2", "二分之三", simplest) == ("correct", None)
    for wrong in ("1又1/2", "一又二分之一", "四分之六"):
        assert missed("3:2", wrong, simplest) == ("wrong", "form"), wrong
    # A time has no simplest form.
    assert missed("4:5", "20:25", simplest)[0] == "wrong"


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_fraction_in_lowest_terms_is_neither_decimal_nor_reducible(sign: str) -> None:
    simplest = GradeRules(form="simplest")
    for top, bottom in ((a, b) for b in (2, 4, 5, 8, 10) for a in range(1, 2 * b) if gcd(a, b) == 1):
        whole, rest = divmod(top, bottom)
        value = f"{top / bottom:.4g}"
        mixed = [f"{whole}又{rest}/{bottom}", rf"{whole}\frac{{{rest}}}{{{bottom}}}"] if whole else []
        reducible = [f"{whole}又{2 * rest}/{2 * bottom}", f"{whole} {3 * rest}/{3 * bottom}"] if whole else []
        percent = f"{top * 100 / bottom:g}%"
        reference = f"{sign}{top}/{bottom}"
        for right in (f"{top}/{bottom}", f"{value}={sign}{top}/{bottom}", f"{top}/{bottom}={sign}{value}", *mixed):
            assert missed(reference, f"\\boxed{{{sign}{right}}}", simplest) == ("correct", None), right
        for wrong in (value, percent, f"{2 * top}/{2 * bottom}", f"{2 * top}/{2 * bottom}={sign}{value}", *reducible):
            assert missed(reference, f"\\boxed{{{sign}{wrong}}}", simplest) == ("wrong", "form"), wrong
            assert missed(reference, f"\\boxed{{{sign}{wrong}}}") == ("correct", None), wrong
    # A reference that is a decimal, or has letters, does not ask for a fraction.
    assert missed("0.375", "3/8", simplest) == missed("x/2", "0.5x", simplest) == ("correct", None)


SIMPLIFIED = {
    "1/(x-1)": (["-1/(1-x)"], ["(2x+2)/((2x+2)(x-1))"]),
    "x/2": (["0.5x", r"\frac12x"], ["2x/4", r"\frac{2x}{4}", "x÷2"]),
    "2/x": ([r"\frac{2}{x}"], ["6/(3x)", "4x/(2x^2)"]),
    "(x+2)/3": (["x/3+2/3"], ["(2x+4)/6"]),
    "1/x+1/y": (["(x+y)/(xy)"], ["2/(2x)+1/y"]),
}
PERCENTAGES = [
    ("decimal", "0.375", "37.5%"),
    ("fraction", "3/4", "75%"),
    ("fraction", "4/5", "4÷5"),
]


def test_numbers_and_single_letters_are_cancelled_in_the_simplest_form() -> None:
    simplest = GradeRules(form="simplest")
    for reference, (rights, wrongs) in SIMPLIFIED.items():
        for right in (reference, f"{reference}。", f"{reference}.", *rights):
            assert missed(reference, f"\\boxed{{{right}}}", simplest) == ("correct", None), right
        for wrong in wrongs:
            assert missed(reference, f"\\boxed{{{wrong}}}", simplest) == ("wrong", "form"), wrong


@pytest.mark.parametrize(("form", "reference", "answer"), PERCENTAGES)
def test_a_percentage_is_neither_decimal_nor_fraction(form: Form, reference: str, answer: str) -> None:
    assert missed(reference, answer, GradeRules(form=form)) == ("wrong", "form")
    assert missed(answer, answer, GradeRules(form=form)) == ("correct", None) or "÷" in answer
    assert missed(reference, answer) == ("correct", None)


def test_a_card_states_a_form_by_name() -> None:
    columns = {"question": "q", "answer": "a"}
    card = {"name": "n", "title": "N", "source": {"kind": "file", "path": "x.jsonl"}, "columns": columns}
    assert from_mapping({**card, "rules": {"form": "factored"}}, "card.yaml").rules.form == "factored"
    with pytest.raises(UsageError, match="form"):
        from_mapping({**card, "rules": {"form": "fractured"}}, "card.yaml")


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
