"""What stands behind an answer, made by the thousand: no reply that takes its answer back is correct, and no reply that
corrects it is called wrong for the corrected value.

For: harness.grading.find.behind, harness.grading.find.choice.
"""

from __future__ import annotations

import random
from itertools import product

import pytest

from harness.core.records import Question
from harness.grading import verdict as deciding
from harness.grading.processes.pool import question_on
from tests.budget import examples
from tests.grading import taken_back


def outcome(reference: str, reply: str) -> str:
    question: Question = question_on(reference)
    extraction = deciding.find(question, reply)
    if extraction is None:
        return "no_answer"
    return deciding.as_stated(extraction, deciding.decide(question, extraction.answer)).outcome


SIZE = examples(4_000)
"""Number of generated replies for each language; `make fuzz` may raise it."""


@pytest.mark.parametrize("language", sorted(taken_back.STATED))
def test_an_answer_that_is_taken_back_is_not_correct(language: str) -> None:
    stated, glue, back = taken_back.STATED[language], taken_back.GLUE[language], taken_back.BACK[language]
    everything = [*product(stated, glue, back, taken_back.VALUES[language])]
    accepted, refused = [], []
    for form, between, correction, (value, other) in random.Random(5).sample(everything, min(SIZE, len(everything))):
        statement = form.format(v=value)
        if between == "，":
            statement = statement.rstrip("。\n")
        reply = statement + between + correction.format(v=value, w=other)
        if outcome(value, reply) == "correct" and correction not in taken_back.BY_MEANING:
            accepted.append(reply)
        if between != "，" and "{w}" in correction and outcome(other, reply) == "wrong":
            refused.append(reply)
    assert (accepted, refused) == ([], [])


@pytest.mark.parametrize("behind", sorted(taken_back.BY_MEANING))
def test_a_correction_that_only_its_meaning_tells_is_not_seen(behind: str) -> None:
    assert outcome("3700", rf"\boxed{{3700}} {behind}") == "correct", "mended: take it out of the set"


CLOSINGS = (
    "That's it!", "Everything checks out.", "Great question! Keep practicing.", "There are no other solutions.",
    "No further simplification is possible.", "This approach works for any similar problem.", "So that's our answer.",
    "The result is already in simplest form.", "Happy to walk through it again.", "Hence the solution is complete.",
    "I have double-checked each step and the result holds.", "The key insight was to pair the terms.",
    "We isolated the variable, and then we divided both sides by 3.",
    "There were 30 pens and then 42 pencils in the two boxes.",
)  # fmt: skip
"""What models write behind an answer that stands."""


@pytest.mark.parametrize("behind", CLOSINGS)
@pytest.mark.parametrize("form", [r"The result is $\boxed{72}$.", "The answer is 72."])
def test_closings_of_models_leave_the_answer(form: str, behind: str) -> None:
    assert outcome("72", f"{form}\n\n{behind}") == "correct"


@pytest.mark.parametrize("behind", taken_back.HARMLESS)
@pytest.mark.parametrize("form", [*taken_back.STATED["English"], *taken_back.STATED["Chinese"]])
def test_reasons_checks_and_closings_leave_the_answer(form: str, behind: str) -> None:
    for between in (" ", "\n\n"):
        reply = form.format(v="12") + between + behind
        assert (outcome("12", reply), outcome("13", reply)) == ("correct", "wrong"), reply


@pytest.mark.parametrize(
    ("reference", "reply", "expected"),
    [
        ("3700", r"\boxed{3700}. Wait, I made an error, it should be 3800.", "undecided"),
        ("3800", r"\boxed{3700}. Wait, I made an error, it should be 3800.", "undecided"),
        ("3700", r"\boxed{3700}. Wait, let me check. 5·740 = 3700. So the total is 3700.", "correct"),
        ("3800", r"\boxed{3700}. Wait, I misread it. The correct answer is 3800.", "correct"),
        ("3700升", "所以答案是3700升。等等，这个结果好像不对，让我再想想。", "undecided"),
        ("3800", "答案是3700。等等，算错了，应该是3800。", "undecided"),
        ("3800", "答案是3700。不对，我算错了。重新计算，正确答案是3800。", "correct"),
        ("3700", "答案是3700。不对，我算错了。重新计算，正确答案是3800。", "wrong"),
        ("B", "有同学认为答案是B，但这是错误的。", "undecided"),
        ("B", "Some student thinks the answer is B, but this is wrong.", "undecided"),
        ("B", "有人说答案是B，他错了。", "undecided"),
        ("B", "答案是B。不对，应该是C。", "undecided"),
        ("B", "答案是B吗？不是。", "undecided"),
        ("A", "我猜答案是A或者B。", "undecided"),
        ("B", "My friend says the correct option is B.", "undecided"),
        ("B", "老师说选B。", "undecided"),
        ("B", "A、C都是合数，只有B是质数，所以选B。", "correct"),
        ("B", "B正确，A和C都错。", "correct"),
        ("B", "Looking at the options, the best choice is B.", "correct"),
        ("B", "综上所述，本题的正确选项是B，理由如上。", "correct"),
        ("B", "所以答案是B. 11。", "correct"),
        ("B", "I choose B. Photosynthesis", "correct"),
    ],
)
def test_what_a_sentence_behind_an_answer_decides(reference: str, reply: str, expected: str) -> None:
    assert outcome(reference, reply) == expected
