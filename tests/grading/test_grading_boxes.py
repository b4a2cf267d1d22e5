r"""Boxes in generated texts, found as a slow search from the start finds them; and how boxes make one answer.

For: harness.answers.boxed, harness.grading.find.several, harness.grading.find.extract.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

import harness
from harness.answers.boxed import Box, boxes_from_end, has_box, is_broken, unclosed_box, without_boxes
from harness.grading.find.several import MAX_BOXES, MAX_GAP_CHARS, join_boxes, parts_of, with_box_before

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
        (r"~~\text{and}~~", True), (r"~~\text{times}~~", False),
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
    box, _ = with_box_before(text, last, earlier)
    assert box.content == content
    assert text[box.start : box.end].replace(rf"}}{gap}\boxed{{", " ") == content
    plain, *before = boxes_from_end(r"\boxed{\sqrt2} \boxed{1.41}")
    assert with_box_before(" ", plain, before) == (plain, True)


STRUCK = ["~~{}~~", "<s>{}</s>", "<del>{}</del>", "<strike>{}</strike>"]
BOXED = [
    r"\boxed{{{}}}",
    r"$\boxed{{{}}}$",
    r"So \boxed{{{}}}.",
    r"答案是\boxed{{{}}}。",
    r"$x = \boxed{{{}}}$",
    r"**\boxed{{{}}}**",
]
REPLIES = [
    "{struck} {box}",
    "{struck}\n\n{box}",
    "{box} {struck}",
    "{box}\n\n{struck}",
    "答：{struck}{box}",
    "**{struck}** {box}",
]


@pytest.mark.parametrize("strike", STRUCK)
@pytest.mark.parametrize("boxed", BOXED)
def test_a_box_that_is_struck_out_states_nothing(strike: str, boxed: str) -> None:
    for number in (5, 12, 2024):
        struck = strike.format(boxed.format(number + 1))
        for reply in REPLIES:
            text = reply.format(struck=struck, box=boxed.format(number))
            assert harness.grade(str(number), text).outcome == "correct", text
            assert harness.grade(str(number + 1), text).outcome == "wrong", text
        assert harness.grade(str(number), f"{struck} {number}").outcome == "correct"
        assert harness.grade(str(number + 1), f"{struck} {number}").outcome == "wrong"
        if strike != STRUCK[1]:  # <s> and </s> around all of a reply are a model's signs of its ends
            assert harness.grade(str(number + 1), struck).outcome == "no_answer"


@pytest.mark.parametrize(
    ("reference", "reply"),
    [
        ("12, 13", r"\boxed{12, ~~\text{and}~~ 13}"),
        ("12, 13", r"$\boxed{12, ~~\text{and}~~ 13}$"),
        ("12, 13", r"$x = \boxed{12,~~13}$, with ~~ as a space"),
        ("5", r"$~~\boxed{5}~~$"),
        ("5", r"\boxed{~~5~~}"),
        ("5", r"<s>The answer is \boxed{5}.</s>"),
        ("5", r"<s>\boxed{5}</s>"),
        ("5", r"It is a ~~ b, so \boxed{5}, and c ~~ d."),
    ],
)
def test_spaces_of_a_formula_and_the_signs_of_both_ends_strike_nothing_out(reference: str, reply: str) -> None:
    assert harness.grade(reference, reply).outcome == "correct"


NAMES = [("x", "y"), ("a", "b"), ("m", "n"), (r"\alpha", r"\beta")]
OR = ["{}或{}", "{} or {}", r"{}\text{{ or }}{}", r"{}\text{{或}}{}", r"{} \lor {}"]
TOGETHER = ["{}且{}", "{}，且{}", r"{}\text{{且}}{}", r"{} \land {}"]


@pytest.mark.parametrize("joined", OR)
@pytest.mark.parametrize(("first", "second"), NAMES)
def test_values_joined_by_or_are_no_values_of_several_unknowns(joined: str, first: str, second: str) -> None:
    for left, right in ((7, 3), (2, 5), (12, 1)):
        named = f"{first}={left}, {second}={right}"
        either = joined.format(left, right)
        one_name = joined.format(f"{first}={left}", f"{first}={right}")
        replies = [f"\\boxed{{{either}}}", f"答案是${either}$。"]
        if "l" not in joined:
            replies += [joined.format(f"\\boxed{{{left}}}", f"\\boxed{{{right}}}").replace("{{", "{")]
            replies += [f"${first}=\\boxed{{{left}}}$ or ${second}=\\boxed{{{right}}}$"]
            replies += [f"\\boxed{{{first}={left}}}或\\boxed{{{second}={right}}}"]
        for reply in replies:
            assert harness.grade(named, reply).outcome != "correct", (named, reply)
            assert harness.grade(f"({left}, {right})", reply).outcome != "correct", reply
        for reply in (f"\\boxed{{{left}, {right}}}", f"${first}=\\boxed{{{left}}}$, ${second}=\\boxed{{{right}}}$"):
            assert harness.grade(named, reply).outcome == "correct", (named, reply)
        for reply in (f"\\boxed{{{either}}}", f"\\boxed{{{one_name}}}", f"\\boxed{{{right}, {left}}}"):
            for reference in (f"{left}, {right}", one_name, f"{first}={left}或{first}={right}"):
                assert harness.grade(reference, reply).outcome == "correct", (reference, reply)


@pytest.mark.parametrize("joined", TOGETHER)
@pytest.mark.parametrize(("first", "second"), NAMES)
def test_no_unknown_is_two_values_at_once(joined: str, first: str, second: str) -> None:
    for left, right in ((7, 3), (2, 5), (12, 1)):
        one_name = joined.format(f"{first}={left}", f"{first}={right}")
        references = [f"{first}={left}或{first}={right}", f"{first}={left}, {first}={right}", f"{left}, {right}"]
        for answer in (one_name, joined.format(left, right)):
            for reply in (f"\\boxed{{{answer}}}", f"答案是${answer}$。"):
                for reference in references:
                    assert harness.grade(reference, reply).outcome != "correct", (reference, reply)
        both = joined.format(f"{first}={left}", f"{second}={right}")
        assert harness.grade(f"{first}={left}, {second}={right}", f"\\boxed{{{both}}}").outcome == "correct"
        assert harness.grade(f"{first}={right}, {second}={left}", f"\\boxed{{{both}}}").outcome == "wrong"
        between = joined.format(f"{first}>{right}", f"{first}<{right + 20}")
        assert harness.grade(f"({right}, {right + 20})", f"\\boxed{{{between}}}").outcome == "correct"


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ("x=2 or x=3", r"x=2 \text{ and } x=3", "undecided"),
        (r"x=2 \text{ and } x=3", "x=2, x=3", "correct"),
        ("x=2 or x=3", "2 and 3", "correct"),
        ("x_1=7, x_2=3", "7或3", "correct"),
        ("(1,2),(2,1)", r"x=1且y=2，或x=2且y=1", "correct"),
        ("(1,2),(2,1)", r"x=1且y=2或x=2且y=1", "correct"),
        ("(1,2),(2,1)", r"x=1且y=1或x=2且y=2", "wrong"),
        ("1, 2, 3", "1, 2, or 3", "correct"),
        (r"\{7, 3\}", "7或3", "correct"),
        ("x≠2且x≠3", r"x \ne 3 且 x \ne 2", "correct"),
    ],
)
def test_and_joins_solutions_in_english_only(reference: str, answer: str, expected: str) -> None:
    assert harness.grade(reference, f"\\boxed{{{answer}}}").outcome == expected
