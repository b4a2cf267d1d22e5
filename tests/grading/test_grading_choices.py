"""Multiple choice: which letter a response gives, in prose, in a box, and beside one.

For: harness.answers.letters, harness.grading.find.choice.
"""

from __future__ import annotations

import pytest

from harness.grading import grade
from tests.grading.choices import CHOICES
from tests.grading.given import question, sample

LETTERS = "ABCDE"


def letters_accepted(response: str) -> list[str]:
    """The references A to E that the response is graded as correct for."""
    return [x for x in LETTERS if grade(question(x, kind="choice"), sample(response)).verdict == "correct"]


@pytest.mark.parametrize(("response", "letter"), CHOICES)
def test_a_response_gives_one_letter_or_none(response: str, letter: str | None) -> None:
    assert letters_accepted(response) == ([letter] if letter else [])


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("form", [
    "The answer is {}.", "Answer: {}", "**Answer: {}**", "ANSWER IS {}", "option {} is correct", "I choose ({}).",
    "故选：{}。", "答案是{}", "That leaves {}.", "\\boxed{{{}}}", "\\boxed{{\\text{{({}) 12}}}}",
    "<b>Answer:</b> {}<br>", "__{}__", "{}) the third one", "Antwort: {}",
])  # fmt: skip
def test_a_stated_letter_is_accepted_and_every_other_one_is_not(form: str, letter: str) -> None:
    assert letters_accepted(form.format(letter)) == [letter]


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(
    "form", ["{}", "({})", "Answer: {}", "the answer is ({}).", "{}. 4", "({}) 4", "\\boxed{{{}}}"]
)
def test_small_letters_name_an_option_as_well(form: str, letter: str) -> None:
    assert letters_accepted(form.format(letter.lower())) == [letter]


@pytest.mark.parametrize(
    ("response", "accepted"),
    [
        ("\\boxed{12}\n\n**Answer: D**", ["D"]),
        (r"The answer is C, since the value is \boxed{12}.", ["C"]),
        (r"The answer is C. \boxed{B}", ["B"]),
        (r"\boxed{B} The answer is C.", ["B"]),
        (r"\boxed{(A) \text{ or } (B)}", []),
        (r"\boxed{A, C}", []),
        (r"\boxed{C. \text{neither A nor B}}", ["C"]),
    ],
)
def test_a_letter_in_the_box_counts_and_a_stated_letter_beside_a_box_without_one(
    response: str, accepted: list[str]
) -> None:
    assert letters_accepted(response) == accepted


@pytest.mark.parametrize(
    ("reference", "answer", "correct"),
    [
        ("A, C", "AC", True), ("A, C", "CA", True), ("A, C", "C, A", True), ("A, C", r"\text{A and C}", True),
        ("AC", "A, C", True), ("A, C", "(A), (C)", True), ("A, C", "A", False), ("A, C", "AB", False),
        ("A, C", "ABC", False), ("AC", "A, B, C", False), ("A, C", "A, D", False),
    ],
)  # fmt: skip
def test_several_letters_as_reference_have_no_order(reference: str, answer: str, correct: bool) -> None:
    assert (grade(question(reference), sample(rf"\boxed{{{answer}}}")).verdict == "correct") is correct
