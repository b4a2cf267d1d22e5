"""Multiple choice: which letter a response gives, in prose, in a box, and beside one.

For: harness.answers.letters, harness.grading.find.choice.
"""

from __future__ import annotations

from itertools import permutations, product

import pytest

import harness
from harness.grading import grade
from harness.grading.find.extract import extract
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
        (r"\boxed{B} The answer is C.", ["C"]),
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


STATING = ("the answer is {x}", "I would choose {x}", "option {x} is correct", "the correct choice would be {x}")
SUPPOSITIONS = (
    "if the coin is fair", "unless it is heated", "when the gas is ideal", "provided that n is even",
    "assuming a closed system", "whenever the price rises", "supposing that both agree", "as long as x is positive",
    "were it not for friction", "had they not met", "in case the test fails",
)  # fmt: skip


def test_a_choice_under_a_supposition_is_no_verdict() -> None:
    for form, clause, letter in product(STATING, SUPPOSITIONS, "BCD"):
        statement = form.format(x=f"({letter})")
        for reply in (f"Yes, {statement} {clause}.", f"{clause}, {statement}.".capitalize(), f"{statement}, {clause}."):
            for reference in "BCD":
                assert harness.grade(reference, reply).outcome in ("undecided", "no_answer"), reply


def test_a_choice_with_its_reason_is_stated() -> None:
    reasons = ("because it is heated", "since the gas expands if it is heated", "as the others fail")
    for form, reason, letter in product(STATING, reasons, "BCD"):
        statement = form.format(x=f"({letter})")
        for reply in (f"Thus {statement} {reason}.", f"When it is heated, the gas expands, so {statement}."):
            assert harness.grade(letter, reply).outcome == "correct", reply
            assert harness.grade("A", reply).outcome == "wrong", reply


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("E is the only choice with the right dimensions.", "E"),
        ("Among the options, only D satisfies both conditions.", "D"),
        ("**H**\n\nOption G confuses mean and median.", "H"),
        ("Option G fits best: it has the right units.", None),
    ],
)
def test_an_option_that_is_named_and_one_that_is_chosen(reply: str, letter: str | None) -> None:
    choice = extract(reply, kind="choice")
    assert (choice and choice.answer) == letter


@pytest.mark.parametrize("words", ["is false", "is wrong", "would fail", "or (D)", "does not fit", "and not (D)"])
def test_words_about_the_option_in_a_box_are_no_choice(words: str) -> None:
    for reference in "CD":
        assert harness.grade(f"({reference})", rf"\boxed{{\text{{(C) {words}}}}}").outcome != "correct"


@pytest.mark.parametrize(
    "form", ["({})({})", "({}) ({})", "[{}][{}]", "{}: {}", "{}) ({})", r"\textbf{{({})}} \textbf{{({})}}"]
)
def test_two_letters_choose_nothing(form: str) -> None:
    for first, second in permutations("ABCDE", 2):
        answer = rf"\boxed{{{form.format(first, second)}}}"
        assert {harness.grade(letter, answer).outcome for letter in (first, second)} == {"undecided"}


@pytest.mark.parametrize("words", ["is correct", "is the answer", "12 cm", "the second law", "isomer"])
def test_the_text_of_the_option_in_a_box_is_no_harm(words: str) -> None:
    assert harness.grade("(C)", rf"\boxed{{\text{{(C) {words}}}}}").outcome == "correct"
    assert harness.grade("(D)", rf"\boxed{{\text{{(C) {words}}}}}").outcome == "wrong"


def test_a_word_of_assent_that_opens_a_sentence_about_something_else_is_no_answer() -> None:
    assert harness.grade(r"\text{No}", "No doubt about it: yes.").outcome != "correct"
    assert harness.grade(r"\text{Yes}", "Yes, no problem: here it is.").outcome != "correct"
    assert harness.grade(r"\text{No}", "No, there is none.").outcome == "correct"
    assert harness.grade(r"\text{No}", "No, it is not.").outcome == "correct"


FRACTIONS = ("1/2", "1/4", "1/5", "2/5")
AREAS = ("8平方厘米", "16厘米", "4平方厘米", "16平方厘米")
PERCENT = ("25%", "20%", "50%", "0.5")
VALUES_OF_OPTIONS = [
    *((FRACTIONS, "B", answer, "correct") for answer in (r"\frac{1}{4}", r"\frac14", "0.25", "B、1/4", r"B \frac14")),
    *((FRACTIONS, "B", answer, "wrong") for answer in (r"\frac{1}{5}", r"\frac12", "0.4", "C、1/5")),
    *((FRACTIONS, "B", answer, "undecided") for answer in (r"\frac{3}{4}", "C、1/4", "B、1/5")),
    *((AREAS, "D", answer, "correct") for answer in (r"16\text{平方厘米}", "16 cm^2", "D、16平方厘米", "D 16平方厘米")),
    *((AREAS, "D", answer, "wrong") for answer in (r"16\text{厘米}", "4 cm^2", "B、16厘米")),
    *((AREAS, "D", answer, "undecided") for answer in ("16", "A、16平方厘米", "D 17平方厘米", r"17\text{平方厘米}")),
    *((PERCENT, "A", answer, verdict) for answer, verdict in ((r"25\%", "correct"), (r"20\%", "wrong"))),
    *((PERCENT, "C", answer, "undecided") for answer in (r"\frac12", r"0.50")),
]


@pytest.mark.parametrize(("choices", "reference", "answer", "expected"), VALUES_OF_OPTIONS)
def test_the_value_of_one_option_alone_is_that_option(
    choices: tuple[str, ...], reference: str, answer: str, expected: str
) -> None:
    problem = question(reference, kind="choice", choices=choices)
    assert grade(problem, sample(rf"\boxed{{{answer}}}")).verdict == expected


OPTIONS_IN_CHINESE = (
    ("3/5", "2/5", "2/3", "1/2"), ("12厘米", "15厘米", "18厘米", "20厘米"), ("三角形", "长方形", "正方形", "圆"),
    ("\\frac{3}{5}", "0.4", "x+1", "x-1"),
)  # fmt: skip
STATEMENTS = (
    "所以，摸到白球的可能性是{}。",
    "答：结果是{}。",
    "因此答案是{}。",
    "故答案为：{}",
    "综上，它等于{}。",
    "分析可知，它是{}。",
)


def test_behind_a_letter_the_text_of_its_option_keeps_it_and_that_of_another_opens_it() -> None:
    for choices in OPTIONS_IN_CHINESE:
        for index, own in enumerate("ABCD"):
            problem = question(own, kind="choice", choices=choices)
            for other, text in enumerate(choices):
                for words_behind in (text, f"选项{'ABCD'[other]}"):
                    for statement in STATEMENTS:
                        reply = f"\\boxed{{{own}}}\n\n{statement.format(words_behind)}"
                        outcome = grade(problem, sample(reply)).verdict
                        # A reply that ends in another letter gives that one, and is wrong.
                        assert (outcome == "correct") is (other == index), (choices, reply, outcome)


@pytest.mark.parametrize(
    ("behind", "outcome"),
    [
        ("所以，摸到白球的可能性是0.4。", "correct"),
        ("所以红球的可能性是3/5。所以白球的可能性是2/5。", "correct"),
        ("所以红球的可能性是3/5，白球的可能性是2/5。", "correct"),
        ("所以白球的可能性是2/5。等等，答案是3/5。", "wrong"),
        ("等等，我算错了。", "undecided"),
        ("错误的是选项A。", "undecided"),
        ("所以，可能性不是2/5。", "undecided"),
    ],
)
def test_the_option_that_the_text_behind_a_letter_ends_in_counts(behind: str, outcome: str) -> None:
    problem = question("B", kind="choice", choices=OPTIONS_IN_CHINESE[0])
    assert grade(problem, sample(f"\\boxed{{B}}\n{behind}")).verdict == outcome


SEVERAL = (
    "\\boxed{{{0}{1}}}", "\\boxed{{{0}、{1}}}", "故选（{0}{1}）", "故选：{0}{1}。",
    "所以选 \\boxed{{{0}}} 和 \\boxed{{{1}}}。", "因此答案是 \\boxed{{{0}, {1}}}", "正确的选项是 {0}、{1}",
    "答案：{0}{1}",
    "The answer is {0} and {1}.", "{0}和{1}。", "选{0}{1}",
)  # fmt: skip
BEFORE = ("", "{0}正确。\n", "选项{1}正确，\n", "故{0}正确；{1}正确；其余错误。\n")


def test_several_letters_are_never_one_of_them_and_are_the_set_that_is_asked_for() -> None:
    options = ("1", "2", "3", "4")
    for first, second in ("AB", "CA", "BD", "DC"):
        for form, before in product(SEVERAL, BEFORE):
            reply = (before + form).format(first, second)
            for letter in (first, second):
                assert outcome_of(letter, reply, options) in ("undecided", "wrong"), (letter, reply)
                assert outcome_of(letter, f"【答案】{first}{second}\n【解析】{letter}正确。", options) == "undecided"
            both = "".join(sorted((first, second)))
            assert outcome_of(both, reply) == "correct", (both, reply)
            other = next(letter for letter in "ABCD" if letter not in both)
            for reference in ("".join(sorted((first, other))), "".join(sorted(both + other))):
                assert outcome_of(reference, reply) in ("undecided", "wrong"), (reference, reply)
    # A product of two letters, and a word of capitals, stay what they are.
    assert outcome_of("AC", "\\boxed{CA}") == outcome_of("B", "The answer is B, not a CAB.", options) == "correct"


def test_a_letter_may_be_called_an_option() -> None:
    options = ("1", "2", "3", "4")
    for right in ("C选项", "C项", "选C项", "选项C"):
        assert outcome_of("C", right, options) == "correct", right
        assert outcome_of("B", right, options) == "wrong", right
    for other in ("C选项错误", "C不正确", "C项不对", "C是错的"):
        assert outcome_of("C", other, options) != "correct", other


def outcome_of(reference: str, reply: str, options: tuple[str, ...] = ()) -> str:
    """The verdict on a reply to a question with these options, or to one with the options in its text."""
    return grade(question(reference, kind="choice" if options else None, choices=options), sample(reply)).verdict
