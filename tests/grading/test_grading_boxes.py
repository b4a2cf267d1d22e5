r"""Boxes in generated texts, found as a slow search from the start finds them; and how boxes make one answer.

For: harness.answers.boxed, harness.grading.find.several.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from harness.answers.boxed import Box, boxes_from_end, has_box, is_broken, unclosed_box, without_boxes
from harness.grading.find.several import MAX_BOXES, MAX_GAP_CHARS, join_boxes, parts_of, with_exact_value

PIECES = [
    "\\boxed", "\\fbox", "\\framebox", "boxed", "box", "fbox", "\\", "{", "{", "}", "}", "\\{", "\\}", "5", "7", " ",
    "\n", "$", "x", "\\pi", "answer ",
]  # fmt: skip
"""What the generated texts consist of."""


def texts(n: int) -> Iterator[str]:
    draw = random.Random(26)
    for _ in range(n):
        yield "".join(draw.choices(PIECES, k=draw.randint(1, 14)))


def slow_boxes(text: str, lo: int, hi: int) -> Iterator[Box]:
    """The complete boxes of text[lo:hi] in the order of the text, their braces counted one by one."""
    part = text[:hi]
    for command in re.compile(r"\\(?:boxed|fbox|framebox)").finditer(part, lo):
        start = command.end() + len(part[command.end() :]) - len(part[command.end() :].lstrip(" \t\n\r"))
        if part[start : start + 1] == "{":
            depth, skip = 0, False
            for position in range(start, hi):
                sign = part[position]
                depth += 0 if skip else (sign == "{") - (sign == "}")
                skip = sign == "\\" and not skip
                if depth == 0:
                    yield Box(part[start + 1 : position], start + 1, position, command.start(), position + 1)
                    break
        elif bare := re.compile(r"\\[A-Za-z]+|(?![A-Za-z]{2})[^\s\\$.,;:(){}\[\]]+").match(part, start):
            yield Box(bare.group(), start, bare.end(), command.start(), bare.end())


def test_boxes_are_those_of_a_slow_search_in_every_part_of_a_text() -> None:
    draw = random.Random(1)
    n_boxes = 0
    for text in texts(4_000):
        lo, hi = sorted(draw.choices(range(len(text) + 1), k=2)) if draw.random() < 0.4 else (0, len(text))
        expected = list(slow_boxes(text, lo, hi))
        n_boxes += len(expected)
        assert list(boxes_from_end(text, lo, hi)) == expected[::-1], (text, lo, hi)
    assert n_boxes > 1_000


def test_a_box_command_is_seen_in_every_part_of_a_text() -> None:
    draw = random.Random(2)
    for text in texts(2_000):
        lo, hi = sorted(draw.choices(range(len(text) + 1), k=2))
        assert has_box(text, lo, hi) == any(word in text[lo:hi] for word in ("\\boxed", "\\fbox", "\\framebox")), text


def test_the_content_of_boxes_joined_by_commas_if_they_differ() -> None:
    for text in texts(2_000):
        contents = [box.content for box in slow_boxes(text, 0, len(text))]
        joined = ", ".join(contents) if len(set(contents)) > 1 else contents[0] if contents else text
        assert without_boxes(text) == joined, text


def test_equal_contents_are_one_and_different_ones_are_joined() -> None:
    assert without_boxes(r"\boxed{5} \boxed{5}") == "5"
    assert without_boxes(r"\boxed{5} \boxed{6}") == "5, 6"


@pytest.mark.parametrize("command", ["\\boxed", "\\fbox", "\\framebox"])
@pytest.mark.parametrize("missing", range(5))
def test_an_open_box_gets_at_most_three_braces(command: str, missing: int) -> None:
    content = "".join(f"\\frac{{{n}}}{{" for n in range(missing)) + "9" + r"\sqrt{2}\{"
    for behind in ("", "$ and 3", "\\) and 3", "\\] and 3", "\nThus 3", "  "):
        text = f"so ${command}{{{content}{behind}"
        box = unclosed_box(text, 0, len(text))
        if missing > 3:
            assert box is None
        else:
            assert box is not None
            assert box.content == content + "}" * missing
            assert text[box.start : box.end].strip() == content
            assert text[box.outer_start :].startswith(command)
        assert unclosed_box(f"{command}{{1}} {text}", 0, len(text) + len(command) + 4) is None


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        (r"\boxed{5} and \boxed{", False),
        (r"\boxed{5} and \boxed{6", True),
        (r"\boxed{5}, so the answer is \boxed{", True),
        (r"\boxed{5}, so the answers are \boxed{", False),
        (r"\boxed{5} answer" + " " * 74 + r"\boxed{", True),
        (r"\boxed{5} answer" + " " * 75 + r"\boxed{", False),
        (r"\boxed{\boxed{5}", False),
        (r"\boxed{\boxed{\boxed{5}", True),
        (r"\boxed{\boxed{\boxed{5}}", False),
        (r"\boxed{ \fbox {  \framebox {5}", True),
        (r"\boxed{ \fbox {  \framebox   {5} } ", False),
        (r"\boxed{\boxed{x\boxed{5}", False),
    ],
)
def test_an_open_box_behind_or_around_a_box_breaks_it(text: str, broken: bool) -> None:
    box = next(boxes_from_end(text))
    assert box.content == "5"
    assert is_broken(text, box, 0, len(text)) is broken


def joined(text: str, parts: int) -> str:
    last, *earlier = boxes_from_end(text)
    box = join_boxes(text, last, earlier, parts)
    assert text[box.outer_end - 1] == "}" == text[box.end]
    assert text[box.outer_start :].startswith("\\boxed{")
    assert text[box.start - 1] == "{"
    return box.content


@pytest.mark.parametrize(
    ("gap", "joins"),
    [
        (", ", True), (" and ", True), ("; ", True), (r"\) and \(", True), (" 和 ", True), (r",\quad y=", True),
        ("\n(b) ", True), ("x", False), ("+", False), (" but ", False), (". We know ", False), ("9", False),
        (" " * MAX_GAP_CHARS, True), (" " * (MAX_GAP_CHARS + 1), False),
    ],
)  # fmt: skip
def test_boxes_are_joined_across_commas_names_and_words_that_list(gap: str, joins: bool) -> None:
    assert joined(rf"\boxed{{1}}{gap}\boxed{{2}}", 2) == ("1, 2" if joins else "2")
    three = rf"\boxed{{0}}{gap}\boxed{{1}} and \boxed{{2}}"
    assert joined(three, 3) == ("0, 1, 2" if joins else "1, 2")


def test_boxes_are_joined_by_their_names_if_all_have_one() -> None:
    assert joined(r"$x = \boxed{1}$ and $y_1=\boxed{2}$", 2) == "x = 1, y_1 = 2"
    assert joined(r"$x = \boxed{1}$ and $\boxed{2}$", 2) == "1, 2"
    assert joined(r"$x = \boxed{x=1}$ and $y=\boxed{2}$", 2) == "x=1, y = 2"
    name = "\\" + "a" * 20
    for blanks, content in ((2, f"{name} = 1, y = 2"), (3, "1, 2")):  # a name and its sign fill 24 characters
        assert joined(rf"{name}={' ' * blanks}\boxed{{1}}, y=\boxed{{2}}", 2) == content


def test_a_last_box_with_as_many_values_as_the_reference_stays_alone() -> None:
    for n in range(1, 6):
        values = ", ".join("123456"[:n])
        for parts in range(1, 7):
            expected = values if 1 < parts <= n else f"9, {values}"
            assert joined(rf"\boxed{{9}} and \boxed{{{values}}}", parts) == expected


def test_at_most_so_many_boxes_are_joined() -> None:
    for n in (MAX_BOXES, MAX_BOXES + 1):
        values = [str(k) for k in range(n)]
        content = joined(" ".join(f"\\boxed{{{value}}}" for value in values), 2)
        assert content == ", ".join(values[-MAX_BOXES:])


@pytest.mark.parametrize("between", [", ", " or ", ";", "、", ", and ", r"\text{ and }", "，"])
@pytest.mark.parametrize("value", ["7", "(1,2)", "[1, 2]", "1,234", "f(x,y)"])
@pytest.mark.parametrize("around", ["{}", "${}$", " {} ", r"\left\{{{}\right\}}", "{{{}}}"])
def test_the_values_of_an_answer_are_counted(between: str, value: str, around: str) -> None:
    for n in range(1, 5):
        if "\\right" in around and "\\{" in value:
            continue
        answer = around.format(between.join([value] * n))
        assert parts_of(answer) == n, answer


@pytest.mark.parametrize(
    ("answer", "n"),
    [
        (r"\pm 3", 2), ("±3", 2), (r"1\pm\sqrt2, 7", 4), (",234", 2), ("1,2345", 2), ("12,34", 2), ("x,234", 2),
        (r"\{1,2\}, \{3,4\}", 2), (r"\{1,2\}", 2), ("{1,2},{3,4}", 2), ("nor", 1), ("1and 2", 2), ("x = 1 or y", 2),
    ],
)  # fmt: skip
def test_a_sign_of_both_doubles_and_a_comma_groups_only_three_digits(answer: str, n: int) -> None:
    assert parts_of(answer) == n


@pytest.mark.parametrize(
    ("gap", "content"),
    [
        (" ", r"\sqrt2 \approx 1.41"), ("", r"\sqrt2 \approx 1.41"), (". ", r"\approx 1.41"), ("!\n", r"\approx 1.41"),
        (".", r"\sqrt2 \approx 1.41"), ("\n\n", r"\approx 1.41"), ("\n", r"\sqrt2 \approx 1.41"),
        ("x" * MAX_GAP_CHARS, r"\sqrt2 \approx 1.41"), ("x" * (MAX_GAP_CHARS + 1), r"\approx 1.41"),
    ],
)  # fmt: skip
def test_a_rounded_box_is_joined_to_the_exact_one_before_it(gap: str, content: str) -> None:
    text = rf"so \boxed{{0}} \boxed{{\sqrt2}}{gap}\boxed{{\approx 1.41}}"
    last, *earlier = boxes_from_end(text)
    box = with_exact_value(text, last, earlier)
    assert box.content == content
    assert text[box.start : box.end].replace(rf"}}{gap}\boxed{{", " ") == content
    plain, *before = boxes_from_end(r"\boxed{\sqrt2} \boxed{1.41}")
    assert with_exact_value("", plain, before) is plain
