"""What is extracted, by which form, and where it stands in the text.

For: harness.grading.find.extract, harness.grading.find.choice,
harness.grading.find.refusals.
"""

from __future__ import annotations

import pytest

from harness.grading.find.choice import choice_in_prose
from harness.grading.find.extract import Extraction, extract, shorten_answer
from harness.grading.find.refusals import is_echo, is_unstated
from tests.grading.choices import CHOICES
from tests.grading.responses import RESPONSES

TEXTS = [response for rows in RESPONSES.values() for _, response, _ in rows if len(response) < 2_000]
REASONING = ("think>", "thinking>", "thought", "reasoning>", "[/THINK]", "think▷", "<|channel|>")


def test_reasoning_before_a_response_moves_its_answer_and_changes_nothing_else() -> None:
    n_moved = 0
    choices = [text for text, _ in CHOICES]
    for kind, texts in (("expression", TEXTS), ("integer", TEXTS), ("text", TEXTS), ("choice", choices)):
        for text in texts:
            if any(mark in text for mark in REASONING):
                continue
            plain = extract(text, kind=kind, parts=2)
            behind = extract("<think>5 or B?</think>" + text, kind=kind, parts=2)
            if plain is None:
                assert behind is None, text
            else:
                assert behind == plain._replace(start=plain.start + 22, end=plain.end + 22), text
                n_moved += 1
    assert n_moved > 1_000


def test_an_answer_stands_where_its_position_says() -> None:
    """But for what is joined from several boxes, unescaped, or carries its condition, unit or sign."""
    n_checked = 0
    for kind in ("expression", "number", "text", "choice"):
        for text in [*TEXTS, *(text for text, _ in CHOICES)]:
            found = extract(text, kind=kind)
            if found is not None and found.method not in ("boxes", "open box"):
                there = text[found.start : found.end]
                exact = found.answer == there or (found.method == "letter" and found.answer in there.upper())
                rest = (there.strip("$") and there.strip("$") in found.answer) or '"' in text or " if " in found.answer
                assert exact or rest or "</" in text, (text, found)
                n_checked += exact
    assert n_checked > 1_500


@pytest.mark.parametrize(
    ("text", "kind", "answer", "method"),
    [
        ("7" * 200, "expression", "7" * 200, "line"),
        ("7" * 201, "expression", "7" * 201, "number"),
        ("3 或者 5", "expression", "3 或者 5", "line"),
        ("第5", "expression", "第5", "line"),
        ("假设答案是36，那么矛盾。", "expression", "36", "sentence"),
        ("所以答案是36。", "expression", "36", "phrase"),
        ("答案是5？6", "expression", "6", "line"),
        ("共有3人。\n所以共有5人。", "expression", "5人", "line"),
        ("Only if n is even is the answer $5$", "expression", "$5$", "sentence"),
        ("We see it. So the answer $5$", "expression", "$5$", "phrase"),
        ("Here is the answer: $5$", "expression", "$5$", "phrase"),
        ("The answer is see $5$.", "expression", "$5$", "phrase"),
        ("The answer is so $5$.", "expression", "so $5$", "phrase"),
        ("The answer is, where $x$ is 3, the value $y$ here.", "expression", "$y$", "phrase"),
        ("The answer is never $3$ and surely $5$ here.", "expression", "$5$", "phrase"),
        ("The answer is surely unlike $3$ and never $5$ here.", "expression", None, ""),
        ("maybe 5", "expression", "maybe 5", "sentence"),
        ("so 5", "expression", "5", "line"),
        ("5 red pens", "expression", "5 red pens", "line"),
        ("5 big red pens", "expression", "5", "number"),
        ("on March 14", "expression", "on March 14", "line"),
        ("March 14 late", "expression", "March 14 late", "sentence"),
        ("negative 5 it is indeed so", "expression", "negative 5", "sentence"),
        ("(1, 2) and then we get 5", "expression", "5", "sentence"),
        ("We have seen that the point is at (1, 2)", "expression", "(1, 2)", "sentence"),
        ("## 42", "expression", "42", "line"),
        ("We know it.\n### So 42", "expression", "42", "number"),
        ("The answer is ***5***", "expression", "5", "phrase"),
        ("(1, 2) it is, as far as we know", "expression", "(1, 2)", "sentence"),
        ("We see <b>it</b>.<br>The answer is <i>5</i>", "expression", "5", "phrase"),
        ("If n is even, the answer is 12", "expression", "12 if n is even", "phrase"),
        ("So. If n is even, the answer is 12", "expression", "12 if n is even", "phrase"),
        (r"If n is even, the answer is \boxed{12}", "expression", "12 if n is even", "box"),
        (r"If n is even, we know it. The answer is \boxed{12}", "expression", "12", "box"),
        (r"\boxed{12} if n is even", "expression", "12 if n is even", "box"),
        ('{"answer": "5\\n6"}', "expression", "5\n6", "phrase"),
        ('{"answer": "\\\\frac12"}', "expression", "\\frac12", "phrase"),
        (r"I know 5 of \boxed{4 in the form", "expression", "4 in the form", "open box"),
        (r"I know 5 of \boxed{4 in the boxed form", "expression", None, ""),
        (r"\boxed{1 and \boxed{2 in the boxed form is 7", "expression", None, ""),
    ],
)
def test_an_answer_and_the_form_that_gave_it(text: str, kind: str, answer: str | None, method: str) -> None:
    found = extract(text, kind=kind)
    assert (None if found is None else (found.answer, found.method)) == (answer and (answer, method))


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [
        ("a $1$ word $2$ and $3$", 2, Extraction("$2$ and $3$", 11, 22, "sentence")),
        ("a $1$ word $2$ and $3$", None, Extraction("$3$", 19, 22, "sentence")),
        ("a $1$, $2$ and $3$", 2, Extraction("$1$, $2$ and $3$", 2, 18, "sentence")),
        ("we see 1 and of it all then 2, 3", 2, Extraction("2, 3", 28, 32, "sentence")),
        (r"say \boxed{3} and \boxed{4}", 2, Extraction("3, 4", 11, 26, "boxes")),
        (r"say \boxed{3} and \boxed{4}", None, Extraction("4", 25, 26, "sentence")),
        (r"say \boxed{3}, \boxed{4}", None, Extraction("4", 22, 23, "box")),
        (r"say \boxed{3} and \boxed{4, 5}", 2, Extraction("4, 5", 25, 29, "box")),
        ("<b>The answer is 5</b>", None, Extraction("5", 17, 18, "phrase")),
        ("答案是共有5人。", None, Extraction("5人", 5, 7, "phrase")),
        ("So. If n is even, the answer is 12", None, Extraction("12 if n is even", 3, 34, "phrase")),
    ],
)
def test_the_parts_of_an_answer_and_their_position(text: str, parts: int | None, expected: Extraction) -> None:
    assert extract(text, parts=parts) == expected


def test_a_long_answer_is_cut_behind_the_limit() -> None:
    assert shorten_answer("0123456789", 4) == "0123 …[cut"
    assert shorten_answer("01  23", 5) == "01 23"
    assert shorten_answer("01  3", 5) == "01  3"


@pytest.mark.parametrize(
    "before", ["so, the ", "well: the final ", "the correct ", "therefore our final exact ", "the "]
)
def test_words_that_lead_to_the_answer(before: str) -> None:
    assert not is_unstated(f"{before}answer is 5", len(before))
    doubted = f"we doubt {before.rpartition(',')[2].rpartition(':')[2].removeprefix('therefore ').strip()} "
    assert is_unstated(f"{doubted}answer is 5", len(doubted))


@pytest.mark.parametrize(
    "before", ["the least likely ", "whether correct ", "the wrong ", "the expected final ", "so whether correct "]
)
def test_adjectives_that_name_another_answer(before: str) -> None:
    assert is_unstated(f"{before}answer is 5", len(before))


def test_only_the_sentence_of_a_number_asks_or_repeats() -> None:
    for text, echo in [
        ("5 it is. Really?", False), ("Is it 5? No.", True), ("The question is hard. 5.", False),
        ("The question says 5. Fine.", True), ("Why? It is 5.", False),
    ]:  # fmt: skip
        at = text.index("5")
        assert is_echo(text, at, at + 1) is echo, text


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("**B**\nbecause of that it works", ("B", 2, 3)),
        ("(B)\nbecause so it works", ("B", 1, 2)),
        ("(B)\nbecause of (C) and (D) it works", None),
        ("We know it.\n(c) 4", ("C", 13, 14)),
    ],
)
def test_a_marked_choice_and_its_position(text: str, stated: tuple[str, int, int] | None) -> None:
    found = choice_in_prose(text, "D")
    assert (found and tuple(found[:3])) == stated
