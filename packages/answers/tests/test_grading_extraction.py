"""Where the answer of a response is found, and that finding it takes linear time.

For: reasoning_answers.find, reasoning_answers.boxed, reasoning_answers.words.
"""

from __future__ import annotations

import pytest
from asked import answered, question, verdict_on

from reasoning_answers.records import GradeRules


@pytest.mark.parametrize(
    ("reference", "text", "answer"),
    [
        ("1/2", r"<think>\boxed{4}</think> So the answer is $\boxed{\frac{1}{2}}$, as wanted.", r"\frac{1}{2}"),
        ("34", "We know.\nThe answer is that the largest $n$ is 34.", "34"),
        ("n+1", "First.\nThe answer is surely, for each $m$ of them, the value $n+1$ overall.", "$n+1$"),
    ],
)
def test_the_span_is_where_the_answer_stands(reference: str, text: str, answer: str) -> None:
    graded = verdict_on(question(reference), answered(text))
    assert graded.outcome == "correct"
    assert graded.span is not None
    assert text[slice(*graded.span)] == graded.extracted == answer


@pytest.mark.parametrize("text", [None, "", r"<think>it is \boxed{5}", "Let me think about it."])
def test_missing_answer_is_no_answer_and_not_wrong(text: str | None) -> None:
    assert verdict_on(question("5"), answered(text)).outcome == "no_answer"


def test_separate_reasoning_is_searched_only_when_asked_for() -> None:
    for text, reasoning in (("", r"\boxed{4} no, \boxed{5}"), (None, "The answer is 5.")):
        assert verdict_on(question("5"), answered(text, reasoning=reasoning)).outcome == "no_answer"
        asked = verdict_on(question("5"), answered(text, reasoning=reasoning), answer_from_reasoning=True)
        assert (asked.outcome, asked.extracted) == ("correct", "5")
    inline = answered(r"<think>so \boxed{5} then")
    assert [verdict_on(question("5"), inline, answer_from_reasoning=asked).outcome for asked in (False, True)] == [
        "no_answer",
        "correct",
    ]


def test_truncated_response_counts_only_a_complete_box_or_a_phrase() -> None:
    verdicts = {
        text: verdict_on(question("5"), answered(text, finish_reason="length")).outcome
        for text in ("we have 5", r"so \boxed{5", r"so \boxed{5} and")
    }
    assert [*verdicts.values()] == ["no_answer", "no_answer", "correct"]


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
    assert verdict_on(question("5"), answered(text)).unextracted is flag


def test_boxes_of_one_sentence_are_joined_only_for_answers_in_parts() -> None:
    text = r"The dimensions are $\boxed{3}$ and $\boxed{4}$."
    assert verdict_on(question("(3,4)", rules=GradeRules(several_boxes=True)), answered(text)).outcome == "correct"
    assert verdict_on(question("(3,4)"), answered(text)).outcome == "undecided"


def test_many_boxes_are_one_answer_not_many_tries() -> None:
    text = " ".join(rf"\boxed{{{n}}}" for n in range(1000))
    assert verdict_on(question("500"), answered(text)).outcome == "wrong"
    assert (
        verdict_on(question("500", kind="integer", rules=GradeRules(several_boxes=True)), answered(text)).outcome
        == "wrong"
    )


@pytest.mark.parametrize("answer", ["7" * 5_000, "x + " * 1_200 + "y", "A long word. " * 500])
def test_equal_text_is_equal_however_long(answer: str) -> None:
    assert verdict_on(question(answer), answered(rf"\boxed{{{answer}}}")).outcome == "correct"
    assert verdict_on(question(answer), answered(rf"\boxed{{{answer[:-1]}z}}")).outcome != "correct"
