"""Where the answer of a response is found, and that finding it takes linear time.

For: harness.grading.find, harness.answers.words.
"""

from __future__ import annotations

import pytest

from harness.core.records import GradeRules
from harness.grading import grade
from harness.grading.find.extract import extract
from tests.grading.given import question, sample
from tests.grading.responses import RESPONSES


@pytest.mark.parametrize(
    ("reference", "response", "expected"),
    [
        pytest.param(*row, id=f"{category}-{index}")
        for category, rows in RESPONSES.items()
        for index, row in enumerate(rows)
    ],
)
def test_response_is_judged_by_its_final_answer(reference: str, response: str, expected: bool) -> None:
    assert (grade(question(reference), sample(response)).verdict == "correct") is expected


def test_span_points_at_the_answer_in_the_text() -> None:
    text = "<think>\\boxed{4}</think>\nSo the answer is $\\boxed{\\frac{1}{2}}$, as wanted."
    graded = grade(question("1/2"), sample(text))
    assert graded.span is not None
    assert text[slice(*graded.span)] == graded.extracted == "\\frac{1}{2}"


@pytest.mark.parametrize("text", [None, "", "<think>it is \\boxed{5}", "Let me think about it."])
def test_missing_answer_is_no_answer_and_not_wrong(text: str | None) -> None:
    assert grade(question("5"), sample(text)).verdict == "no_answer"


def test_separate_reasoning_is_never_searched() -> None:
    assert grade(question("5"), sample("", reasoning="\\boxed{5}")).verdict == "no_answer"
    assert grade(question("5"), sample(None, reasoning="The answer is 5.")).verdict == "no_answer"


def test_reasoning_is_searched_when_asked_for() -> None:
    graded = grade(question("5"), sample("", reasoning="\\boxed{4} no, \\boxed{5}"), answer_from_reasoning=True)
    assert (graded.verdict, graded.extracted) == ("correct", "5")
    inline = grade(question("5"), sample("<think>so \\boxed{5} then"), answer_from_reasoning=True)
    assert inline.verdict == "correct"


def test_truncated_response_counts_only_a_complete_box_or_a_phrase() -> None:
    assert grade(question("5"), sample("we have 5", finish_reason="length")).verdict == "no_answer"
    assert grade(question("5"), sample("so \\boxed{5", finish_reason="length")).verdict == "no_answer"
    assert grade(question("5"), sample("so \\boxed{5} and", finish_reason="length")).verdict == "correct"


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("\\boxed{5}, or rather \\boxed{6}", True),
        ("<think>\\boxed{5}</think> The answer is 6.", True),
        ("<think>\\boxed{5}", True),
        ("\\boxed{6}", False),
        ("\\boxed{6} and then \\boxed{5}", False),
    ],
)
def test_right_answer_passed_over_is_flagged(text: str, flag: bool) -> None:
    assert grade(question("5"), sample(text)).unextracted is flag


def test_boxes_of_one_sentence_are_joined_only_for_answers_in_parts() -> None:
    text = "The dimensions are $\\boxed{3}$ and $\\boxed{4}$."
    assert grade(question("(3,4)", rules=GradeRules(several_boxes=True)), sample(text)).verdict == "correct"
    assert grade(question("(3,4)"), sample(text)).verdict == "wrong"


def test_many_boxes_are_one_answer_not_many_tries() -> None:
    text = " ".join(f"\\boxed{{{n}}}" for n in range(1000))
    assert grade(question("500"), sample(text)).verdict == "wrong"
    assert grade(question("500", kind="integer", rules=GradeRules(several_boxes=True)), sample(text)).verdict == "wrong"


@pytest.mark.parametrize(
    "piece",
    [
        "\\boxed{",
        "{",
        "}",
        "\\boxed{5} ",
        "$",
        "\\(",
        "<think>",
        "think",
        "</",
        "box",
        "\\frac{",
        "answer is ",
        "1,",
        "#### ",
        "**A",
        "[",
        " ",
    ],
)
def test_work_grows_linearly_with_the_length(piece: str) -> None:
    """Counted in bytecode lines, which do not depend on the machine's load."""
    small, large = (_lines_run(piece * (size // len(piece))) for size in (20_000, 200_000))
    assert large <= 12 * small + 1_000


def _lines_run(text: str) -> int:
    import sys

    count = 0

    def trace(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        extract(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("answer", ["7" * 5_000, "x + " * 1_200 + "y", "A long word. " * 500])
def test_equal_text_is_equal_however_long(answer: str) -> None:
    assert grade(question(answer), sample(f"\\boxed{{{answer}}}")).verdict == "correct"
    assert grade(question(answer), sample(f"\\boxed{{{answer[:-1]}z}}")).verdict != "correct"
