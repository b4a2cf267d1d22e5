"""A last sentence that only names the reference is undecided, so that an audit offers it; it had been no answer.

For: harness.grading.find.naming.
"""

from __future__ import annotations

import pytest

import harness

FORMS = (
    "这个多边形是{}。", "这个图形叫做{}。", "数一数它的边，我们看到它就是{}！", "先看图。这个图形不是{}。",
    "它可能是一个{}。\n",
)  # fmt: skip
ENGLISH = ("{} ran the fastest of all of them.", "Looking at the times, {} ran faster than all of the others.")


@pytest.mark.parametrize(
    ("name", "other"), [("正方形", "正五边形"), ("平行四边形", "长方体"), ("小明", "小红"), ("锐角", "直角")]
)
def test_a_sentence_that_names_the_reference_is_undecided(name: str, other: str) -> None:
    for form in FORMS:
        grade = harness.grade(name, form.format(name))
        assert grade.outcome == "undecided", form
        assert harness.grade(name, form.format(other)).outcome != "correct", form
    # Wrong twins: a last sentence without the name, a question, a reply that was left to a box.
    first = FORMS[0].format(name)
    assert harness.grade(name, f"{first}下面再看别的图形的样子。").outcome == "no_answer"
    assert harness.grade(name, f"{first[:-1]}吗？").outcome == "no_answer"
    assert harness.grade(name, rf"\boxed{{}}{first}").outcome == "no_answer"


@pytest.mark.parametrize("name", ["Evelyn", "Navin"])
def test_the_same_in_english_with_whole_words(name: str) -> None:
    for form in ENGLISH:
        assert harness.grade(name, form.format(name)).outcome == "undecided", form
        assert harness.grade(name, form.format(f"{name}ton")).outcome == "no_answer", form
    assert (
        harness.grade(name, f"I cannot determine whether it was {name} that won the race of all of them.").outcome
        == "no_answer"
    )


@pytest.mark.parametrize("form", ["那天是{}，不是{}。", "那天是{}而不是{}", "不是{1}，而是{0}。"])
def test_a_weekday_or_a_synonym_is_named_as_it_is_typed(form: str) -> None:
    for reference, name, other in (
        ("星期三", "星期三", "星期四"), ("周三", "星期三", "星期四"), ("星期三", "礼拜三", "礼拜四"),
        ("无解", "无解", "有解"),
    ):  # fmt: skip
        assert harness.grade(reference, form.format(name, other)).outcome == "undecided", name
        assert harness.grade(reference, form.format(other, "星期五")).outcome in ("no_answer", "wrong"), other


def test_a_particle_names_nothing() -> None:
    assert harness.grade("是", "这个多边形的边是比较多的样子。").outcome != "undecided"
