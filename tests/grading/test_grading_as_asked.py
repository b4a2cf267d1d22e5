"""Values beside their questions: rounded ones where rounding is asked for, and the 万 that a question prints.

For: harness.grading.compare.as_asked, harness.answers.grammar.numerals.
"""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from harness.core.records import Message
from harness.grading.verdict import grade
from tests.grading.given import question, sample
from tests.grading.outcomes import outcome

ROUND = "把这个数四舍五入到{}位。"
PRINTED = "{}≈（　）{}（保留一位小数）"


def beside(text: str, reference: str, reply: str) -> str:
    """The verdict on a reply beside a question with this text."""
    asked = replace(question(reference), messages=(Message(role="user", content=text),))
    return grade(asked, sample(reply)).verdict


@pytest.mark.parametrize(("sign", "scale"), [("万", 10**4), ("亿", 10**8)])
def test_a_rounded_value_is_right_where_rounding_is_asked_for(sign: str, scale: int) -> None:
    random = Random(30)
    for _ in range(25):
        tenths = random.randrange(11, 999)
        number = tenths * scale // 10 + random.randrange(-scale // 25, scale // 25)
        whole = round(number / scale)
        reference, text = f"{whole}{sign}", ROUND.format(sign)
        for form in ("{n}≈{v}", "≈{v}", "约{v}", "\\boxed{{{n}≈{v}}}", "答：{n}≈{v}。", "{n}\\approx {v}", "{v}"):
            right = form.format(n=number, v=reference)
            assert beside(text, reference, right) == "correct", right
            assert beside(text, reference, form.format(n=number, v=f"{whole + 1}{sign}")) == "wrong", right
        # Where no rounding is asked for, the rounded value may not be what was asked.
        assert beside(f"写成用{sign}作单位的数。", reference, f"{number}≈{reference}") == "undecided"
        assert whole % 10 == 0 or beside(text, reference, f"{number + 2 * scale}≈{reference}") != "correct"
        printed, value = PRINTED.format(number, sign), f"{tenths // 10}.{tenths % 10}"
        assert beside(printed, f"{value}{sign}", value) == beside(printed, f"{value}{sign}", f"{value}{sign}")
        assert beside(printed, f"{value}{sign}", value) == "correct"
        assert beside(printed, f"{value}{sign}", f"{tenths // 10 + 1}.{tenths % 10}") == "wrong"
        for repeated in (f"{value}{sign}", f"{value}{sign}人", f"{number}≈{value}{sign}", f"\\boxed{{{value}{sign}}}"):
            assert beside(printed, value, repeated) == "correct", repeated
        other = "亿" if sign == "万" else "万"
        for wrong in (f"{value}{other}", f"{tenths // 10 + 1}.{tenths % 10}{sign}"):
            assert beside(printed, value, wrong) == "wrong", wrong
        assert beside(printed.replace("）", "）人"), f"{value}{sign}", value) == "undecided"


def test_numbers_with_numerals_of_scale_are_sums() -> None:
    random = Random(31)
    for _ in range(40):
        scales = sorted(random.sample([("亿", 10**8), ("万", 10**4), ("千", 1_000)], 2), key=lambda pair: -pair[1])
        (high, above), (low, below) = scales
        first, second = random.randrange(1, 99), random.randrange(1, min(9_000, above // below))
        value = first * above + second * below
        texts = [f"{first}{high}{second}{low}", f"{first}{high}{second * below:0{len(str(above)) - 1}}", str(value)]
        for reference in texts:
            for answer in texts:
                assert outcome(reference, answer) == outcome(reference, f"{answer}人") == "correct", (reference, answer)
            exchanged = f"{second}{high}{first}{low}"
            assert first == second or outcome(reference, exchanged) in ("wrong", "undecided"), (reference, exchanged)
            assert outcome(reference, f"{first + 1}{high}{second}{low}") == "wrong"
            # A product of the two was the reading of 5千3万, which goes up.
            assert outcome(reference, f"{second}{low}{first}{high}") in ("wrong", "undecided")
    for text in ("3万5", "12万560", "5千3万", "3万5万", "3万50000"):
        assert {outcome(text, "150000000"), outcome(text, "30005"), outcome("150000000", text)} <= {
            "undecided",
            "wrong",
        }
    # The 千 of a unit is none.
    assert outcome("3千克500克", "3.5千克") == outcome("3500克", "3千克500克") == "correct"


UNITS = (
    ("How much in dollars does she make?", ("$18", "18 dollars"), ("18 cents", "18 euros")),
    ("What is its area in square centimeters?", ("18 cm²", "18 square centimeters"),
     ("18 cm", "18 cm³", "18 square inches")),
    ("What is the temperature now (in °C)?", ("18°C", "18 degrees Celsius"), ("18°F",)),
    ("How many hours does it take?", ("18 hours", "18 hrs"), ("18 minutes", "18 days")),
    ("它长多少米？", ("18米", "十八米"), ("18厘米", "18平方米", "18千米")),
    ("它长多少分米？", ("18分米",), ("18分", "18米")),
    ("速度是多少千米/时？", ("18千米/时",), ("18千米", "18米/秒")),
    ("3000克=（　）千克", ("18千克", "18kg"), ("18克", "18吨")),
)  # fmt: skip


@pytest.mark.parametrize(("text", "rights", "others"), UNITS)
def test_a_unit_is_dropped_only_where_the_question_asks_for_no_other(
    text: str, rights: tuple[str, ...], others: tuple[str, ...]
) -> None:
    for form in ("{}", "The answer is {}.", "\\boxed{{{}}}"):
        for right in rights:
            assert beside(text, "18", form.format(right)) == "correct", (form, right)
        for other in others:
            assert beside(text, "18", form.format(other)) in ("undecided", "wrong"), (form, other)
            # Another question names no unit, and what it measures elsewhere is not asked for.
            assert beside("Its sides are measured in feet. How large is it?", "18", form.format(other)) == "correct"
            assert beside(text, "18", form.format(other.replace("18", "17"))) != "correct"
