"""Where the answer of a response is found.

For: reasoning_answers.find, reasoning_answers.boxed, reasoning_answers.words.
"""

from __future__ import annotations

import pytest

from reasoning_answers import Rules, grade


@pytest.mark.parametrize(
    ("reference", "text", "answer"),
    [
        ("1/2", r"<think>\boxed{4}</think> So the answer is $\boxed{\frac{1}{2}}$, as wanted.", r"\frac{1}{2}"),
        ("34", "We know.\nThe answer is that the largest $n$ is 34.", "34"),
        ("n+1", "First.\nThe answer is surely, for each $m$ of them, the value $n+1$ overall.", "$n+1$"),
    ],
)
def test_the_span_is_where_the_answer_stands(reference: str, text: str, answer: str) -> None:
    graded = grade(reference, text)
    assert graded.outcome == "correct"
    assert graded.span is not None
    assert text[slice(*graded.span)] == graded.extracted == answer


@pytest.mark.parametrize("text", ["", r"<think>it is \boxed{5}", "Let me think about it."])
def test_missing_answer_is_no_answer_and_not_wrong(text: str) -> None:
    assert grade("5", text).outcome == "no_answer"


def test_separate_reasoning_is_searched_only_when_asked_for() -> None:
    replies = (("", r"\boxed{4} no, \boxed{5}"), ("", "The answer is 5."), (r"<think>so \boxed{5} then", None))
    for text, reasoning in replies:
        assert grade("5", text, reasoning=reasoning).outcome == "no_answer"
        asked = grade("5", text, reasoning=reasoning, answer_from_reasoning=True)
        assert (asked.outcome, asked.extracted) == ("correct", "5")


def test_truncated_response_counts_only_a_complete_box_or_a_phrase() -> None:
    texts = ("we have 5", r"so \boxed{5", r"so \boxed{5} and")
    assert [grade("5", text, truncated=True).outcome for text in texts] == ["no_answer", "no_answer", "correct"]


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        (r"\boxed{5}, or rather \boxed{6}", True),
        (r"<think>\boxed{5}</think> The answer is 6.", True),
        (r"<think>\boxed{5}", True),
        (r"\boxed{6}", False),
        (r"\boxed{6} and then \boxed{5}", False),
    ],
)
def test_right_answer_passed_over_is_flagged(text: str, flag: bool) -> None:
    assert grade("5", text).unextracted is flag


def test_boxes_of_one_sentence_are_joined_only_for_answers_in_parts() -> None:
    text = r"The dimensions are $\boxed{3}$ and $\boxed{4}$."
    assert grade("(3,4)", text, rules=Rules(several_boxes=True)).outcome == "correct"
    assert grade("(3,4)", text).outcome == "undecided"


def test_many_boxes_are_one_answer_not_many_tries() -> None:
    text = " ".join(rf"\boxed{{{n}}}" for n in range(1000))
    assert grade("500", text).outcome == "wrong"
    assert grade("500", text, kind="integer", rules=Rules(several_boxes=True)).outcome == "wrong"


@pytest.mark.parametrize("answer", ["7" * 5_000, "x + " * 1_200 + "y", "A long word. " * 500])
def test_equal_text_is_equal_however_long(answer: str) -> None:
    assert grade(answer, rf"\boxed{{{answer}}}").outcome == "correct"
    assert grade(answer, rf"\boxed{{{answer[:-1]}z}}").outcome != "correct"
