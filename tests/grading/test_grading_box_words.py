r"""The English words around a box, made by the thousand: no unlisted word behind a number leaves it standing.

For: harness.grading.find.box_words.
"""

from __future__ import annotations

import random
from itertools import product

import pytest

from harness.answers.grammar.units import FUNCTION_WORDS, unit_of
from tests.budget import examples
from tests.grading.test_grading_box_clause import outcome

UNKNOWN = [
    "HKD", "furlong", "furlongs", "league", "nautical miles", "light years", "Hong Kong dollars", "stone", "carat",
    "bushel of corn", "fathom deep", "parsec", "hogshead", "score", "francs", "dozenth", "knots", "psi", "per furlong",
]  # fmt: skip
NUMBERS = [r"\boxed{4}", r"$\boxed{4}$", r"**\boxed{4}**", r"\(\boxed{4}\)", r"$\boxed{\frac{8}{2}}$"]
"""Boxes with the number 4."""

PROSE = [
    "", ".", " is the answer.", " as required.", ", which is right.", " So we are done.", " I hope this helps.",
    " in total.", " satisfies the condition.", "\nNote that it is small.", "is the answer.", " and no more.",
]  # fmt: skip
"""Text that may stand behind a number and leave it standing."""

_SYLLABLES = [
    "ba", "de", "fi", "go", "lu", "mer", "nox", "pil", "rav", "sto", "tur", "vek", "wim", "zan", "cho", "qua", "bri",
]  # fmt: skip
"""Parts of random words that are in no dictionary."""


@pytest.mark.parametrize("unit", ["km", "元", "公顷", "apples", "dollars", "%"])
def test_an_unknown_word_behind_a_box_belongs_to_its_number(unit: str) -> None:
    for word, box, space in product(UNKNOWN, NUMBERS, ("", " ", "~", r"\ ")):
        assert outcome(f"4 {unit}", f"It is {box}{space}{word}.") != "correct", (box, space, word)
    for prose, box in product(PROSE, NUMBERS):
        assert outcome(f"4 {unit}", f"It is {box}{prose}") == "correct", (box, prose)
        assert outcome(f"5 {unit}", f"It is {box}{prose}") == "wrong", (box, prose)


def test_a_word_in_the_formula_of_a_box_belongs_to_its_number() -> None:
    for style in (r"\text{ %s}", r"\,\mathrm{%s}", r"\text{%s}", r"\ \textbf{%s}"):
        assert outcome("4 km", rf"$\boxed{{4}}{style % 'furlong'}$") == "undecided", style
        assert outcome("4 furlong", rf"$\boxed{{4}}{style % 'furlong'}$") == "correct", style
        assert outcome("5 furlong", rf"$\boxed{{4}}{style % 'furlong'}$") != "correct", style


@pytest.mark.parametrize("reference", ["4 km", "4元", "4", "4.0", "$4$"])
def test_random_words_at_a_box_leave_it_undecided(reference: str) -> None:
    draw = random.Random(reference)
    has_unit = reference in ("4 km", "4元")
    for _ in range(examples(600)):
        word = "".join(draw.choices(_SYLLABLES, k=draw.randint(2, 4)))
        if word in FUNCTION_WORDS or unit_of(word) is not None:
            continue
        box, more = draw.choice(NUMBERS[:-1]), draw.choice(["", ".", " of it", " the day", " is right"])
        assert outcome(reference, f"It is {box}{word}{more}") == "undecided", (box, word, more)
        expected = "undecided" if has_unit else "correct"
        assert outcome(reference, f"It is {box} {word}{more}") == expected, (box, word, more)


@pytest.mark.parametrize(("reference", "reply", "expected"), [
    ("4 HKD", r"\boxed{4}HKD", "correct"), ("5 HKD", r"\boxed{4}HKD", "wrong"), ("16", r"\boxed{16}ish", "undecided"),
    ("5 minutes", r"\boxed{5} hours later", "wrong"), ("5 hours", r"\boxed{5} hours later", "correct"),
    ("4 km", r"\boxed{4} m long", "wrong"), ("4 m", r"\boxed{4} m long", "correct"),
    ("4 dollars", r"\boxed{4} dollars per day", "undecided"), ("4 dollars", r"\boxed{4} dollars Canadian", "undecided"),
    ("4 dollars", r"\boxed{4} dollars profit", "correct"), ("4", r"the \boxed{4}th day", "correct"),
    ("4 km", r"the \boxed{4}th day", "undecided"), ("6", r"a \boxed{6}-sided polygon", "correct"),
    ("2/3", r"$\boxed{\frac{2}{3}}$ pizza", "correct"), ("2/3 cup", r"$\boxed{\frac{2}{3}}$ pizza", "undecided"),
    ("16 balls", r"\boxed{16} balls are needed", "correct"), ("16 balls", r"\boxed{16} bats are needed", "undecided"),
])  # fmt: skip
def test_the_words_are_read_as_though_they_stood_in_the_box(reference: str, reply: str, expected: str) -> None:
    assert outcome(reference, reply) == expected


_STRICT = [
    "less than",
    "is more than",
    "greater than",
    "Not equal to",
    "小于",
    "结果大于",
    "超过",
    "不到",
    "总数不足",
    "价格低于",
]


@pytest.mark.parametrize("words", _STRICT)
def test_a_box_behind_a_strict_inequality_is_undecided(words: str) -> None:
    for box, reference in product((r" \boxed{37}", r" $\boxed{37}$", r"**\boxed{37}**"), ("37", "37 km", "38")):
        assert outcome(reference, f"{words}{box}.") == "undecided", (box, reference)


@pytest.mark.parametrize("words", [
    "The minimum is at least", "no more than", "about", "The least number greater than 36 is", "至少",
    "大于36的最小整数是", "小于等于", "等于", "对于 n = 3, it is",
])  # fmt: skip
def test_other_words_before_a_box_leave_it(words: str) -> None:
    for box in (r" \boxed{37}", r" $\boxed{37}$"):
        assert outcome("37", f"{words}{box}.") == "correct", box
        assert outcome("38", f"{words}{box}.") == "wrong", box


@pytest.mark.parametrize(("reference", "correct", "other"), [
    ("18 dollars per day", "dollars a day", "dollars an hour"), ("18 dollars", "dollars today", "dollars a day"),
    ("18 dollars", "dollars in profit", "dollars every day"), ("18 dollars", "dollars left", "dollars monthly"),
    ("18 km/h", "km an hour", "km a minute"), ("18 km", "km away", "km each hour"),
    ("18 books", "books in total", "books per month"), ("18 people per room", "people per room", "people per house"),
    ("18 people", "people in the room", "people per square mile live there"), ("18 cups", "cups", "cups per loaf"),
    ("18 books", "of the books are new", "of the boxes are new"), ("18 days", "more days", "more weeks"),
    ("18 books", "of the remaining books", "of the remaining pens"), ("18 ways", "different ways.", "other letters."),
    ("18 hours", "of an hour", "of a minute"), ("18 books", "books left.", "books sold."),
    ("18 books", "remaining.", "sold."), ("18 books", "books altogether.", "pens altogether."),
    ("18 books", "books on history.", "bookshelves of books."), ("18 slices", "slices of pizza.", "trays of slices."),
    ("18 cm^2", "cm$^2$.", "cm."), ("18 cm", "cm.", "cm$^2$."), ("18 cm^2", "cm² as required.", "cm³ as required."),
    ("18 dollars", "dollars and he pays.", "dollars and fifty cents."),
    ("18 hours", "hours and ten pages.", "hours and a half."),
    ("18 years old", "years old.", "months old."), ("18 years old", "years.", "months."), ("18 pm", "p.m.", "a.m."),
    ("18 pm", "pm", "am"), ("18 times", "times as many pens", "more pens than Tom"),
])  # fmt: skip
def test_a_rate_a_share_or_a_further_part_behind_a_box_counts(reference: str, correct: str, other: str) -> None:
    for box in (r"\boxed{18}", r"$\boxed{18}$"):
        assert outcome(reference, f"It is {box} {correct}") == "correct", box
        assert outcome("18", f"It is {box} {correct}") == "correct", box
        assert outcome(reference, f"It is {box} {other}") != "correct", box


@pytest.mark.parametrize("unit", [r"\text{ cm}", r"\ \mathrm{cm}", r"\,\text{cm}", "~cm"])
def test_a_power_behind_the_unit_of_a_box_is_no_further_value(unit: str) -> None:
    for closing in ("$", "$.", "$ in total."):
        reply = rf"The area is $\boxed{{48}}{unit}^2{closing}"
        assert outcome("48 cm^2", reply) == outcome("48", reply) == "correct", reply
        assert outcome("48 cm", reply) == outcome("48 m^2", reply) == outcome("2", reply) == "wrong", reply
    assert outcome("12", r"It is \boxed{12}².") == "undecided"
