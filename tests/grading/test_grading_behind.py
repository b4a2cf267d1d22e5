"""What stands behind an answer, made by the thousand: no reply that takes its answer back is correct, and no reply that
corrects it is called wrong for the corrected value.

For: harness.grading.find.behind, harness.grading.find.choice.
"""

from __future__ import annotations

import random
from itertools import product

import pytest

import harness
from tests.budget import examples, share_of
from tests.grading import behind_answers, behind_wordings, taken_back
from tests.grading.outcomes import outcome

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


@pytest.mark.parametrize("language", ["English", "Chinese"])
def test_a_right_box_with_another_value_behind_it_is_not_correct(language: str) -> None:
    replies = share_of(reply for half in (0, 1) for reply in behind_answers.twins(language, half))
    assert [reply for reply in replies if outcome(reply.reference, reply.text) == "correct"] == []


@pytest.mark.parametrize(("language", "most"), [("English", 0.10), ("Chinese", 0.15)])
def test_an_explanation_a_check_or_a_closing_behind_a_right_box_leaves_it(language: str, most: float) -> None:
    replies = [reply for half in (0, 1) for reply in behind_answers.right(language, half)]
    verdicts = [outcome(reply.reference, reply.text) for reply in replies]
    assert "wrong" not in verdicts
    assert verdicts.count("undecided") <= most * len(verdicts)


@pytest.mark.parametrize(
    ("reference", "reply", "expected"),
    [
        (r"\frac34", r"\boxed{\frac34}. So we get $0.75$.", "correct"),
        (r"\frac34", r"\boxed{\frac34}. So we get $0.57$.", "undecided"),
        ("1000", r"\boxed{10^3}. This gives 1000.", "correct"),
        ("3600升", r"\boxed{3600升}。所以这个水箱能装3.6立方米水。", "correct"),
        ("3600升", r"\boxed{3600升}。所以这个水箱能装3600立方米水。", "undecided"),
        ("3元", "\\boxed{3元}\n\n因此，答案是3角。", "wrong"),
        ("3角", "\\boxed{3元}\n\n因此，答案是3角。", "correct"),
        ("13", r"\boxed{12}. So the total is 14.", "wrong"),
        ("13", r"\boxed{12}. So the total is 13.", "undecided"),
        ("12", r"\boxed{12}. The two legs are 3 and 4. So 3·4 = 12.", "correct"),
        ("5", r"\boxed{5}. Since $x+y=7$, both are whole.", "correct"),
        ("60", "\\boxed{120}\n\nWait, that's not right. It should be $60$.", "undecided"),
        ("120", "\\boxed{120}\n\nWait, that's not right.", "undecided"),
        ("7", r"\boxed{7}. This is the answer to part (a) only.", "undecided"),
        ("7", r"\boxed{7}. This was the value before the discount.", "undecided"),
        ("7", r"\boxed{7}. This is the number of pairs.", "correct"),
        ("7元", r"\boxed{7元}。这是打折前的价格。", "undecided"),
        ("7元", r"\boxed{7元}。这就是最终的答案。", "correct"),
        ("x=5", "\\boxed{x = 5}\n\nHere is why: 3x = 15.", "correct"),
        ("x=5", "\\boxed{x = 5}\n\nHere is why: x = 15.", "undecided"),
        ("x=5", "\\boxed{x=5}\n\n因为3x=15。", "correct"),
        ("x=5", "\\boxed{x=5}\n\n因此x=15。", "undecided"),
        ("x=5", "\\boxed{x=5}\n\n3x=15", "correct"),
        ("x=5", "\\boxed{x=5}\n\nx_1 = 15", "undecided"),
        ("x=5", "\\boxed{x=5}\n\nWe have 3x = 15.", "correct"),
        ("x=5", "\\boxed{x=5}\n\n2x + y = 7", "correct"),
        ("5", "\\boxed{5}\n\n2x = 12, so x = 6", "undecided"),
        ("1:9", "\\boxed{1:9}\n\nReasoning: 20 : 180 = 1 : 9.", "correct"),
        ("1:9", "\\boxed{1:9}\n\nThe ratio is 1 : 8.", "undecided"),
        ("1:9", "\\boxed{1:9}\n\nAttempt 2: 8.", "undecided"),
        ("3/5", "\\boxed{3/5}\n\nReasoning: 3 of the 5 balls are red.", "correct"),
        ("3/5", "\\boxed{3/5}\n\nProbability: 2/5 of the time.", "undecided"),
        ("3/5", "\\boxed{3/5}\n\nReasoning: 2/5.", "undecided"),
        ("63", "\\boxed{63}\n\n再算一次：7×9=63，和前面一样。", "correct"),
        ("63", "\\boxed{63}\n\n再算一次：7×9=63，和前面不一样。", "undecided"),
    ],
)
def test_a_value_stated_behind_a_box_must_get_the_same_verdict(reference: str, reply: str, expected: str) -> None:
    assert outcome(reference, reply) == expected


@pytest.mark.parametrize("language", sorted(behind_wordings.WRONG))
def test_a_right_box_that_is_taken_back_doubted_or_replaced_behind_it_is_not_correct(language: str) -> None:
    replies = share_of(behind_wordings.wrong(language))
    assert [reply for reply in replies if outcome(reply.reference, reply.text) == "correct"] == []


@pytest.mark.parametrize(
    ("language", "kind", "most"),
    [
        ("Chinese", "explanation", 0.20), ("Chinese", "check", 0.10), ("Chinese", "closing", 0.15),
        ("English", "explanation", 0.20), ("English", "check", 0.20), ("English", "closing", 0.25),
    ],
)  # fmt: skip
def test_most_wordings_behind_a_right_box_leave_it(language: str, kind: str, most: float) -> None:
    replies = [reply for half in (0, 1) for reply in behind_wordings.right(language, kind, half)]
    verdicts = [outcome(reply.reference, reply.text) for reply in replies]
    assert "wrong" not in verdicts
    assert verdicts.count("undecided") <= most * len(verdicts)


def test_the_steps_name_the_value_behind_the_box() -> None:
    verdict = harness.grade("3/4", r"\boxed{\frac34}. So we get $0.57$.")
    assert (verdict.outcome, verdict.rule) == ("undecided", "sentence")
    assert "behind it, the text states 0.57, which must get the same verdict" in verdict.steps
    assert "rule sentence: the text behind the answer states another value: “So we get $0.57$.”" in verdict.steps


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


@pytest.mark.parametrize("stated", [r"\boxed{C}", "The answer is C", r"\boxed{28}", "The answer is 28"])
@pytest.mark.parametrize(
    "doubt",
    [
        "but I'm not sure this is right",
        "but I am not sure",
        "though I am not certain",
        "but that is not correct",
        "but this may not be right",
        "although I do not really know, so this is a guess",
    ],
)
def test_a_doubt_in_the_answer_s_own_sentence_leaves_a_letter_open_as_a_number(stated: str, doubt: str) -> None:
    reference = "C" if "C" in stated else "28"
    assert harness.grade(reference, f"{stated}, {doubt}.").outcome == "undecided"


@pytest.mark.parametrize(
    "reason", ["not A", "not option B, which is too small", "rather than D", "because A is not right"]
)
def test_what_an_option_is_not_leaves_it_standing(reason: str) -> None:
    assert harness.grade("C", rf"\boxed{{C}}, {reason}.").outcome == "correct"


ASKED = ("因为题目要求的是最大值", "因为题目问的是面积", "由于本题要求选最小的数", "这是因为题目要求的是和")
"""What the question asks for, as the reason of an option."""


@pytest.mark.parametrize("reason", ASKED)
@pytest.mark.parametrize("mark", ["，", "。", "\n"])
def test_what_the_question_asks_for_is_the_reason_of_an_option(reason: str, mark: str) -> None:
    for behind in ("。", "，所以选C。", "，因此C符合。"):
        assert harness.grade("C", rf"\boxed{{C}}{mark}{reason}{behind}").outcome == "correct", behind
        assert harness.grade("B", rf"\boxed{{C}}{mark}{reason}{behind}").outcome == "wrong", behind
    for behind in (
        "，而我算的是最小值。",
        "，所以选B。",
        "，所以C不对。",
        "，应该是B。",
        "，但我看错了。",
        "，其实是B。",
        "，我弄错了。",
    ):
        assert harness.grade("C", rf"\boxed{{C}}{mark}{reason}{behind}").outcome != "correct", behind
    assert harness.grade("12", rf"\boxed{{12}}{mark}因为题目要求的是半径，而我算的是直径。").outcome == "undecided"
