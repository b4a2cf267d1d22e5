"""Labels of an answer in bold or italic type, before an answer in words: marks × labels × words, each with wrong twins.

For: harness.grading.find.extract, harness.grading.find.refusals.
"""

from __future__ import annotations

from itertools import product

import pytest

import harness

LABELS = (
    "Final answer", "Answer", "The final answer", "FINAL ANSWER", "The answer", "My answer", "答案", "最终答案", "答",
)  # fmt: skip
MARKED = (
    "**{label}:** {word}", "**{label}: {word}**", "**{label}**: {word}", "__{label}:__ {word}", "__{label}__: {word}",
    "*{label}:* {word}", "_{label}:_ {word}", "***{label}:*** {word}", "**{label}:** **{word}**", "{label}: **{word}**",
    "**{label}：**{word}", "**{label}**：{word}", "__{label}：__{word}", "{label}：{word}", "<b>{label}:</b> {word}",
    "> **{label}:** {word}", "- **{label}:** {word}", "### **{label}:** {word}",
)  # fmt: skip
WORDS = {
    "no": ("yes",), "yes": ("no",), "odd": ("even",), "even": ("odd",), "True": ("False",),
    "是": ("否",), "否": ("是",), "increasing": ("decreasing",), "Tuesday": ("Monday", "Friday"), "对": ("错",),
}  # fmt: skip
"""Answer in words → words that it is not."""

NO_ANSWERS = ("Wrong answer", "A common wrong answer", "Expected answer", "His answer", "错误的答案", "小明的答案")
WORK = "We have 3 cases, and in each of them the sum is 12.\n\n"


@pytest.mark.parametrize(("form", "label"), tuple(product(MARKED, LABELS)))
def test_marks_of_a_label_are_no_part_of_it(form: str, label: str) -> None:
    for word, others in WORDS.items():
        reply = WORK + form.format(label=label, word=word)
        assert harness.grade(word, reply).outcome == "correct", (word, reply)
        for other in others:
            assert harness.grade(other, reply).outcome == "wrong", (other, reply)


@pytest.mark.parametrize(("form", "label"), tuple(product(MARKED, NO_ANSWERS)))
def test_a_label_of_another_answer_states_none(form: str, label: str) -> None:
    for word in WORDS:
        reply = WORK + form.format(label=label, word=word)
        assert harness.grade(word, reply).outcome != "correct", reply


@pytest.mark.parametrize("word", ["no", "是"])
def test_a_heading_in_bold_states_what_follows(word: str) -> None:
    assert harness.grade(word, f"{WORK}**Final Answer**\n\n{word}").outcome == "correct"
    assert harness.grade(WORDS[word][0], f"{WORK}**Final Answer**\n\n{word}").outcome == "wrong"


def test_marks_inside_a_formula_or_a_name_are_no_marks_of_a_label() -> None:
    assert harness.grade("5", "2**answer = 5").outcome != "correct"
    assert harness.grade("no", "user_answer: no, and what follows is 3.").outcome != "correct"
