"""Where the answer of a response is found, and that finding it takes linear time.

For: harness.grading.find, harness.answers.boxed, harness.answers.words.
"""

from __future__ import annotations

import unicodedata

import pytest

from harness.answers.bounds import MAX_OPEN_BOXES
from harness.answers.boxed import boxes_from_end, has_box, unclosed_box, without_boxes
from harness.answers.grammar.characters import _TABLE as CHARACTERS
from harness.answers.grammar.vocabulary import CONSTANTS, FUNCTIONS, GREEK, MONEY, OPERATORS, RELATIONS
from harness.core.records import GradeRules
from harness.grading import grade
from harness.grading.find.choice import stated_choice
from harness.grading.find.extract import TAIL_CHARS, extract, states_something
from harness.grading.find.refusals import is_echo, is_unstated
from harness.grading.find.several import join_boxes, parts_of
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
    assert grade(question("(3,4)"), sample(text)).verdict == "undecided"


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


@pytest.mark.parametrize(
    ("text", "kind", "answer"),
    [
        ("```\n42\n```", "integer", "42"),
        ("</think>42", "integer", "42"),  # the reasoning may be empty
        ("The answer is Jane owned 3 pens.", "integer", "Jane owned 3 pens"),
        ("The answer is Jane owned 3 red pens.", "integer", "3"),  # a sentence of more than three words
        ("The answer is Jane owned 3 red pens and 4 books.", "integer", "Jane owned 3 red pens and 4 books"),
        ("so with $n$ 34 it is", "integer", "34"),
        (r"\boxed{\sqrt2}. \boxed{\approx 1.41}", "expression", r"\approx 1.41"),
        ("一二三四五六七八", "expression", "一二三四五六七八"),
        ("一二三四五六七八九", "expression", None),  # more than eight signs are a sentence
        (r"\boxed{1}" + "The final answer is $2$.".ljust(TAIL_CHARS), "integer", "$2$"),
        (r"\boxed{1}" + "The final answer is $2$.".ljust(TAIL_CHARS + 1), "integer", "1"),
    ],
)
def test_where_an_answer_begins_and_ends(text: str, kind: str, answer: str | None) -> None:
    extraction = extract(text, kind=kind)
    assert (extraction and extraction.answer) == answer
    assert extraction is None or text[extraction.start : extraction.end] == answer


def test_a_sentence_is_looked_at_for_240_characters() -> None:
    """A question mark that stands farther behind a number belongs to another sentence."""
    assert is_echo("5 " + "word " * 40 + "?", 0, 1)
    assert not is_echo("5 " + "word " * 60 + "?", 0, 1)


def test_options_that_are_only_discussed_are_no_choice() -> None:
    assert stated_choice("Look at option A and option B", "D") is None
    assert stated_choice("Look at option B", "D") is not None


@pytest.mark.parametrize(("answer", "n"), [("1,234", 1), ("1,2345", 2), ("1,23", 2)])
def test_a_comma_before_three_digits_groups_them(answer: str, n: int) -> None:
    assert parts_of(answer) == n


def test_the_word_box_is_no_box_and_an_fbox_is_one() -> None:
    assert list(boxes_from_end("a box {5}")) == []
    assert without_boxes(r"\fbox{5}") == "5"


def test_a_box_whose_closing_brace_is_escaped_has_the_span_of_its_content() -> None:
    box = unclosed_box(r"\boxed{5\}", 0, 10)
    assert box is not None
    assert (box.content, box.start, box.end) == ("5", 7, 8)


def test_so_many_open_boxes_are_passed_over() -> None:
    for n, contents in ((MAX_OPEN_BOXES, ["1"]), (MAX_OPEN_BOXES + 1, [])):
        assert [box.content for box in boxes_from_end(r"\boxed{1}" + r"\boxed{" * n)] == contents


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("34", "We know.\nThe answer is that the largest $n$ is 34."),
        ("n+1", "First.\nThe answer is surely the value $n+1$ overall."),
        ("n+1", "First.\nThe answer is surely, for each $m$ of them, the value $n+1$ overall."),
    ],
)
def test_the_span_of_a_formula_among_words_is_its_own(reference: str, text: str) -> None:
    graded = grade(question(reference), sample(text))
    assert graded.verdict == "correct"
    assert graded.span is not None
    assert text[slice(*graded.span)] == graded.extracted
    assert text.rindex(str(graded.extracted)) == graded.span[0]


def test_joined_boxes_reach_from_the_first_to_the_last() -> None:
    text = r"say: \boxed{1} and \boxed{2}."
    last, *earlier = boxes_from_end(text)
    joined = join_boxes(text, last, earlier, 2)
    assert joined.content == "1, 2"
    assert text[joined.outer_start : joined.outer_end] == r"\boxed{1} and \boxed{2}"


def test_a_box_needs_its_backslash_within_the_text_and_an_unclosed_one_its_brace() -> None:
    text = r"\boxed{5}"
    assert (has_box(text, 0, len(text)), has_box(text, 1, len(text))) == (True, False)
    assert unclosed_box(r"\boxed 5", 0, 8) is None


@pytest.mark.parametrize("before", ["the wrong ", "the wrong final ", "whether the "])
def test_words_that_leave_the_answer_unstated(before: str) -> None:
    text = f"{before}answer is 5{' and so on' * 20}"
    assert is_unstated(text, len(before))
    assert not is_unstated(f"so the {text.removeprefix(before)}", len("so the "))


def test_a_sign_of_the_notation_is_an_answer_and_what_only_surrounds_values_states_nothing() -> None:
    """Every sign and command that the grammar knows stays an answer; the others are all named here."""
    commands = {*RELATIONS, *OPERATORS, *GREEK, *FUNCTIONS, *CONSTANTS, *MONEY} - {"$"}
    signs = [*map(chr, CHARACTERS), *"+-*/<>=%^|~", *(rf"\{name}" if name.isalnum() else name for name in commands)]
    signs += ["{}", r"\{\}", r"\{ \}", r"$\{\}$", *"⊥∥✓√○☆‰x７零", "> <", "<="]
    silent = {sign for sign in signs if not states_something(sign)}
    layout = {sign for sign in silent if unicodedata.category(sign) in ("Zs", "Zl", "Zp", "Cc", "Cf", "Mn")}
    assert silent - layout == set("！＂＃＆＇（），．：；？＠［＼］＿｀｛｝•˚′″’‘“”⌊⌋⌈⌉、。【】〔〕《》…⟨⟩〈〉")
    bits = [*"\\${(…?！_:'", "\\ ", "$$", r"\(", r"\[", r"\(\)", "()", "...", "“”", "\\,", "\\\\"]
    twins = [*bits, *(first + second for first in bits for second in bits if first + second not in ("{}", "{\\}"))]
    assert [twin for twin in twins if states_something(twin)] == []
    assert [sign for sign in bits if not states_something(f"{sign}7{sign}") or not states_something(f"{sign}>")] == []
    outcomes = {
        "So the answer is \\": "no_answer",
        "So the answer is $\\": "no_answer",
        r"The answer is \boxed{\}.": "no_answer",
        r"\boxed{…}": "no_answer",
        r"The answer is \boxed{\{\}}.": "wrong",
        r"The answer is \boxed{42}.": "correct",
    }
    assert {reply: grade(question("42"), sample(reply)).verdict for reply in outcomes} == outcomes
    for sign in (">", "<", "=", "√", "×", "∞", r"\varnothing", "+", "-"):
        assert grade(question(sign), sample(f"The answer is \\boxed{{{sign}}}.")).verdict == "correct", sign
