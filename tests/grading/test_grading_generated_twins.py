"""Generated answers, each with a right twin and a wrong one: neither side can be won by giving in."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.benchmarks.drafts import kind_of
from harness.core.records import Question
from harness.grading import grade
from harness.grading.compare.equivalence import equal
from tests.budget import examples
from tests.grading.given import RULES, question, sample

pytestmark = pytest.mark.fuzz
bounded = settings(max_examples=examples(60), deadline=None)

NUMBERS = st.integers(-99, 99)
DISTINCT = st.lists(NUMBERS, min_size=2, max_size=4, unique=True)
SCALES = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9, "dozen": 12, "万": 10**4, "亿": 10**8}
UNITS = {"mm": 1, "cm": 10, "m": 1_000, "km": 10**6}
WORDS = st.sampled_from(["is wrong", "or more", "squared", "cubed", "(rejected)", "at most", "is not right"])
PREFIXES = ["G", "M", "k", "m"]
COMPUTING = {"plus": "+", "minus": "-", "times": "*", "over": "/", "divided by": "/"}
SENTENCES = ["The answer is {}.", "She earned {} dollars.", "In the end there were {}.", "So we get {}", "#### {}"]
STATEMENTS = [
    "The answer is {}.", "Answer: **{}**", "I choose option {}.", "故选：{}。", "That leaves {}.", "({}) is correct.",
    "So the right choice is ({}).", r"\boxed{{\text{{({})}}}}",
]  # fmt: skip


def equals(reference: str, answer: str) -> bool:
    return bool(equal(reference, answer, kind_of(reference), RULES).equal)


def twins(reference: str, right: str, wrong: str) -> None:
    assert equals(reference, right), (reference, right)
    assert not equals(reference, wrong), (reference, wrong)
    assert equals(right, reference), (right, reference)
    assert not equals(wrong, reference), (wrong, reference)


@bounded
@given(DISTINCT, st.permutations("abkpqrxyz"), st.randoms(use_true_random=False))
def test_values_of_two_names_exchanged_are_wrong(values: list[int], letters: list[str], chance: object) -> None:
    named = list(zip(letters, values, strict=False))
    shuffled = sorted(named, key=lambda _: chance.random())  # type: ignore[attr-defined]
    moved = list(zip([name for name, _ in named], [*values[1:], values[0]], strict=True))
    twins(*(", ".join(f"{name} = {value}" for name, value in pairs) for pairs in (named, shuffled, moved)))


@bounded
@given(DISTINCT)
def test_one_element_dropped_or_changed(values: list[int]) -> None:
    listed = ", ".join(map(str, values))
    twins(listed, ", ".join(map(str, reversed(values))), ", ".join(map(str, values[:-1])))
    twins(listed, listed, ", ".join(map(str, [*values[:-1], values[-1] + 200])))
    twins(rf"\{{{listed}\}}", rf"\{{{', '.join(map(str, sorted(values)))}\}}", rf"\{{{listed}, 500\}}")


@bounded
@given(DISTINCT)
def test_coordinates_exchanged(values: list[int]) -> None:
    point = f"({', '.join(map(str, values))})"
    twins(point, rf"\left({' , '.join(map(str, values))}\right)", f"({', '.join(map(str, [*values[1:], values[0]]))})")


@bounded
@given(st.integers(1, 99), st.sampled_from(sorted(SCALES)), st.sampled_from(sorted(SCALES)))
def test_scale_word_changed(number: int, scale: str, other_scale: str) -> None:
    other_scale = other_scale if other_scale != scale else "trillion"
    sized, changed = (rf"{number}\text{{ {word}}}" for word in (scale, other_scale))
    twins(str(number * SCALES[scale]), sized, changed)
    twins(str(number * SCALES[scale]), sized, str(number))


@bounded
@given(st.integers(1, 99), st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(UNITS)))
def test_unit_changed(number: int, unit: str, other_unit: str) -> None:
    other_unit = other_unit if other_unit != unit else "kg"
    same = r"\text{ mm}"
    twins(rf"{number}\text{{ {unit}}}", f"{number * UNITS[unit]}{same}", rf"{number}\text{{ {other_unit}}}")


@bounded
@given(st.integers(1, 99), st.sampled_from(PREFIXES), st.sampled_from(PREFIXES), st.sampled_from(["W", "Pa", "V", "J"]))
def test_prefix_of_a_unit_changed(number: int, prefix: str, other_prefix: str, unit: str) -> None:
    other_prefix = other_prefix if other_prefix != prefix else ("k" if prefix != "k" else "M")
    exponent = {"G": 9, "M": 6, "k": 3, "m": -3}[prefix]
    twins(
        rf"{number}\text{{ {prefix}{unit}}}",
        rf"{number} \times 10^{{{exponent}}}\text{{ {unit}}}",
        rf"{number}\text{{ {other_prefix}{unit}}}",
    )


@bounded
@given(st.integers(-99, 99), st.integers(2, 99), st.sampled_from(sorted(COMPUTING)))
def test_words_that_compute(number: int, second: int, words: str) -> None:
    sign = COMPUTING[words]
    assert equals(f"{number} {sign} {second}", rf"{number}\text{{ {words} }}{second}")
    assert not equals(str(number), rf"{number}\text{{ {words} }}{second}") or number == 0


@bounded
@given(st.integers(1, 999), st.sampled_from(["thousand", "million", "billion", "dozen"]), st.sampled_from(SENTENCES))
def test_scale_word_in_prose(number: int, scale: str, sentence: str) -> None:
    response = sample(sentence.format(f"{number} {scale}"))
    assert grade(question(str(number * SCALES[scale])), response).verdict == "correct"
    assert grade(question(str(number)), response).verdict == "wrong"


@bounded
@given(NUMBERS, st.integers(1, 30), st.integers(2, 9))
def test_chain_of_inequalities_scaled(low: int, width: int, factor: int) -> None:
    high = low + width
    scaled = f"{factor * low} < {factor}x < {factor * high}"
    twins(f"({low}, {high})", scaled, f"{factor * low} < {factor}x < {factor * high + 1}")


@bounded
@given(NUMBERS, WORDS)
def test_words_that_deny_or_change_a_number(number: int, words: str) -> None:
    assert not equals(str(number), rf"{number}\text{{ {words}}}")
    assert equals(str(number), rf"{number}\text{{ apples}}")


@bounded
@given(NUMBERS, st.integers(1, 50), st.sampled_from(["[)", "(]", "[]"]))
def test_bracket_turned(low: int, width: int, ends: str) -> None:
    high = low + width
    turned = {"[)": "(]", "(]": "[)", "[]": "[)"}[ends]
    interval, wrong = (f"{e[0]}{low}, {high}{e[1]}" for e in (ends, turned))
    signs = ["<=" if end in "[]" else "<" for end in ends]
    twins(interval, f"{low} {signs[0]} x {signs[1]} {high}", wrong)
    assert not equals(interval, f"{low}, {high}")


@bounded
@given(st.sampled_from("ABCDE"), st.sampled_from("ABCDE"), st.sampled_from(STATEMENTS))
def test_letter_moved(letter: str, reference: str, statement: str) -> None:
    response = f"(A) is tempting, and (E) looks good. {statement.format(letter)}"
    verdict = grade(question(reference, kind="choice"), sample(response)).verdict
    assert (verdict == "correct") == (letter == reference)


@bounded
@given(NUMBERS, st.integers(1, 9), st.integers(1, 9))
def test_cases_exchanged(bound: int, slope: int, other_slope: int) -> None:
    first, second, below, above = f"{slope}x", f"-{other_slope}x+1", f"x<{bound}", rf"x\ge {bound}"

    def cases(*rows: tuple[str, str]) -> str:
        return r"\begin{cases}" + r"\\".join(f"{value}&{condition}" for value, condition in rows) + r"\end{cases}"

    twins(
        cases((first, below), (second, above)),
        cases((second, rf"\text{{if }}{above}"), (first, r"\text{otherwise}")),
        cases((first, above), (second, below)),
    )


@bounded
@given(st.integers(2, 12), st.integers(1, 5), st.permutations("knm"))
def test_step_of_a_family_changed(part: int, step: int, letters: list[str]) -> None:
    start = rf"\frac{{\pi}}{{{part}}}"
    twins(
        rf"{start}+{step}{letters[0]}\pi, {letters[0]}\in\mathbb{{Z}}",
        rf"{start}-{step}{letters[1]}\pi, {letters[1]}\in\mathbb{{Z}}",
        rf"{start}+{step + 1}{letters[0]}\pi, {letters[0]}\in\mathbb{{Z}}",
    )


@bounded
@given(DISTINCT)
def test_boxes_side_by_side(values: list[int]) -> None:
    reference = ", ".join(map(str, values))
    right = " and ".join(rf"$x = \boxed{{{value}}}$" for value in values)
    assert grade(question(reference), sample(f"The roots are {right}.")).verdict == "correct"
    wrong = " and ".join(rf"$x = \boxed{{{value}}}$" for value in [*values[:-1], values[-1] + 200])
    assert grade(question(reference), sample(f"The roots are {wrong}.")).verdict == "wrong"


@bounded
@given(st.integers(2, 99), st.sampled_from(["地面", "的地砖", " of floor", " in all of the rooms"]), st.booleans())
def test_a_further_answer_in_words_undoes_no_verdict(number: int, words: str, is_chinese: bool) -> None:
    """Its own text is right; a wrong number or unit stays wrong; a number of its own may be right, and stays open."""
    unit, wrong_unit = ("平方米", "米") if is_chinese else ("square metres", "kilograms")
    reference, further = f"{number} {unit}", f"{number} {unit}{words}"
    alone, both = question(reference), question(reference, further)
    second = question(reference, f"{number + 1} {unit}{words}")

    def verdict(asked: Question, answer: str) -> str:
        return grade(asked, sample(rf"\boxed{{\text{{{answer}}}}}")).verdict

    assert [verdict(alone, further), verdict(both, further)] == ["undecided", "correct"]
    for wrong in (f"{number + 1} {unit}", f"{number} {wrong_unit}", f"{number + 1}"):
        assert [verdict(alone, wrong), verdict(both, wrong)] == ["wrong", "wrong"], wrong
        assert verdict(second, wrong) != "wrong", wrong
    for open_answer in (f"{number} {unit}材料", f"{number + 1} {unit}{words}"):
        assert verdict(both, open_answer) == "undecided", open_answer
    assert verdict(both, reference) == "correct"


@pytest.mark.parametrize(
    ("references", "verdicts"),
    [
        (("是", "7是质数"), {"否": "wrong", "7是质数": "correct", "质数": "undecided"}),
        (("是", "对"), {"否": "wrong", "对": "correct", "错": "undecided"}),
        (("5", "x等于3"), {"x等于3": "correct", "3": "undecided", "4": "undecided"}),  # 3 may be right, too
        (("3", "第四个"), {"第四个": "correct", "4": "undecided"}),
        (("0", "没有余数"), {"没有余数": "correct", "3": "wrong", "没有": "undecided"}),
        (("0", "no solution"), {r"\emptyset": "correct", r"\{\}": "undecided"}),  # a value, in any notation
        (("地面", "30平方米"), {"30米": "undecided", "30平方米": "correct"}),  # the first answer decides
    ],
)
def test_further_answers_in_words_beside_words_and_values(
    references: tuple[str, ...], verdicts: dict[str, str]
) -> None:
    asked = question(*references)
    assert {answer: grade(asked, sample(rf"\boxed{{{answer}}}")).verdict for answer in verdicts} == verdicts
