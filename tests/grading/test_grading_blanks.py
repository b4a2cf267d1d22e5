"""Values between semicolons may fill blanks in their order; the card says so. The self-test names such references."""

from __future__ import annotations

from itertools import cycle, product

import pytest

from harness.benchmarks.drafts import kind_of
from harness.core.records import GradeRules, VerdictName
from harness.grading.selftest import self_test
from tests.grading.given import question
from tests.grading.outcomes import outcome
from tests.grading.test_grading_restated import verdict_of

BLANKS = [
    ("9；20", "20，9", None, "undecided"),
    ("9；20", "20，9", True, "wrong"),
    ("9；20", "20，9", False, "correct"),
    ("9；20", r"\{20,9\}", None, "undecided"),
    ("9；20", r"\{20,9\}", True, "undecided"),
    ("9；20", "9，20", None, "correct"),
    ("9；20", "20，8", None, "wrong"),
    ("1/8; 5/8", r"\frac58, \frac18", None, "undecided"),
    ("9，20", "20，9", None, "correct"),
    ("x=3；y=4", "y=4，x=3", None, "correct"),
    ("x=1；x=2", "x=2，x=1", None, "correct"),
    ("(1,2);(3,4)", "(3,4),(1,2)", None, "correct"),
    ("鸡23只；兔12只", "兔12只，鸡23只", None, "correct"),
]


@pytest.mark.parametrize(("key", "answer", "ordered", "verdict"), BLANKS)
def test_semicolons_of_a_reference_leave_the_order_to_the_card(
    key: str, answer: str, ordered: bool | None, verdict: VerdictName
) -> None:
    assert verdict_of(key, f"\\boxed{{{answer}}}", kind_of(key), GradeRules(ordered=ordered)) == verdict


@pytest.mark.parametrize("ordered", [None, True, False])
def test_the_self_test_names_references_whose_order_is_open(ordered: bool | None) -> None:
    keys = ("9；20", "9，20", "x=3；y=4")
    result = self_test([question(key, rules=GradeRules(ordered=ordered), name="1") for key in keys])
    assert result.open_orders == ([("1", "9；20")] if ordered is None else [])


@pytest.mark.parametrize("key", ["长12厘米，宽6厘米", "鸡23只，兔12只", "众数7，中位数6.5", "商5余2"])
def test_the_self_test_reads_named_quantities_as_the_grader_does(key: str) -> None:
    assert self_test([question(key)]).unread == []


ROWS = (("9", "20"), ("3", "5", "7"), ("1/2", "-3"), ("135", "3060"), ("0.5", r"\frac{3}{4}"))
BRACKETS = ("（{}）", "({})", "【{}】", "[{}]", "({}) ", r"\left({}\right)")
REPLIES = (r"\boxed{{{}}}", "{}", "{}。", "答：{}", "答案：{}。", "${}$")


@pytest.mark.parametrize(("separator", "values"), [*product(("；", ";", "，", ", "), ROWS)])
def test_values_in_brackets_side_by_side_are_the_list_beside_a_list(separator: str, values: tuple[str, ...]) -> None:
    reference = separator.join(values)

    def outcomes(row: tuple[str, ...]) -> set[str]:
        texts = ("".join(bracket.format(value) for value in row).strip() for bracket in BRACKETS)
        return {outcome(reference, reply.format(text)) for text, reply in zip(texts, REPLIES, strict=True)}

    assert outcomes(values) == {"correct"}
    assert outcomes((*values[:-1], "16")) == {"wrong"}
    assert outcomes((*values, "16")) == {"undecided"}, "a value more"
    assert outcomes(("61", *("71" for _ in values))) == {"wrong"}, "none of the values"
    assert outcomes(values[::-1]) == {"undecided" if separator in "；;" else "correct"}, "in another order"


def test_beside_one_number_values_in_brackets_are_a_product() -> None:
    for value, answer in product(
        ("180", "x^2-1"), ("(9)(20)", "(x+1)(x-1)", r"\left(9\right)\left(20\right)", "(9) (20)")
    ):
        right = ("x" in value) == ("x" in answer)
        assert outcome(value, rf"\boxed{{{answer}}}") in (("correct",) if right else ("wrong", "undecided"))
    assert outcome("(9,20)", "(9)(20)") != "correct"


UNITS = "小时 分|时 分|分 秒|元 角|角 分|元 分|米 厘米|m cm|平方米 平方分米|m² dm²|公顷 平方米|升 毫升|吨 千克"
CHAINS = [tuple(row.split()) for row in f"{UNITS}|kg g|度 分|° ′|小时 分 秒|元 角 分|米 分米 厘米".split("|")]
JOINED = ("{}", r"\boxed{{{}}}", "答：{}。")


def joined(numbers: tuple[int, ...], units: tuple[str, ...], form: str = "{}{}") -> str:
    return "".join(form.format(number, unit) for number, unit in zip(numbers, units, strict=False))


def test_a_quantity_in_several_units_is_the_list_of_its_numbers_beside_a_list_of_numbers() -> None:
    for units, pair, form in zip(CHAINS, cycle(((2, 30), (3, 5))), cycle(JOINED), strict=False):
        numbers = (*pair, 9)[: len(units)]
        first, *rest = map(str, numbers)
        reference = "；".join([first, *rest])
        right = [joined(numbers, units), joined(numbers, units, "{} {} "), joined(numbers, units, r"\ {}\text{{{}}}")]
        right += [] if units[0] in "°分角" else [first + units[0] + "零" + joined(numbers[1:], units[1:])]
        wrong = [
            joined((*numbers[:-1], numbers[-1] * 10 + 3), units),
            joined((numbers[0] + 1, *numbers[1:]), units),
            joined(numbers[::-1], units),
            joined(numbers, units[::-1]),
            joined(numbers[:-1], units),
            f"{first}.{rest[0]}{units[0]}",
            "约" + joined(numbers, units),
            "-" + joined(numbers, units),
            "不到" + joined(numbers, units),
            joined(numbers, units) + "多",
            joined(numbers, units) + "或" + joined(numbers[::-1], units),
        ]
        for text in right:
            assert outcome(reference, form.format(text.removeprefix("\\").strip())) == "correct", (reference, text)
            assert outcome(text, reference) == "correct", (text, reference)
        for longer in (f"{reference}；0", f"0；{reference}"):
            assert outcome(longer, rf"\boxed{{{right[0]}}}") in ("wrong", "undecided"), longer
        for text in wrong:
            assert outcome(reference, rf"\boxed{{{text}}}") in ("wrong", "undecided"), (reference, text)


REMAINDERS = ("{}余{}", "商{}余{}", "{}……{}", r"{}\cdots\cdots{}", r"{} \text{{ 余 }} {}", "（{}）……（{}）")


def test_a_quotient_with_its_remainder_is_the_list_of_the_two_beside_a_list() -> None:
    top, by, quotient, rest = 57, 8, 7, 1
    for form in REMAINDERS:
        for text in (form.format(quotient, rest), f"{top}÷{by}=" + form.format(quotient, rest)):
            for key in (f"{quotient}；{rest}", f"{quotient}……{rest}"):
                for reply in (rf"\boxed{{{text}}}", f"答案： {text}"):
                    assert outcome(key, reply) == "correct", (key, reply)
        for other in ((quotient, rest + 1), (quotient + 1, rest), (quotient - 1, rest + by)):
            for text in (form.format(*other), f"{top}÷{by}=" + form.format(*other)):
                for key in (f"{quotient}；{rest}", f"{quotient}……{rest}", f"{rest}；{quotient}；0"):
                    assert outcome(key, rf"\boxed{{{text}}}") != "correct", (key, text)


def test_a_fraction_beside_two_blanks_and_a_list_that_may_have_a_decimal_comma_are_undecided() -> None:
    for text in (r"\frac{3}{4}", "3/4", "3:4", "3÷4"):
        assert outcome("3；4", rf"\boxed{{{text}}}") == "undecided"
        assert outcome("3；5", rf"\boxed{{{text}}}") == outcome("4；3", rf"\boxed{{{text}}}") == "wrong"
    assert outcome("2米5厘米", "2,5") == outcome("2,5", "2米5厘米") == "undecided"
    for premise, verdict in (("2.5小时", "correct"), ("150分", "correct"), ("2.6小时", "undecided"), ("x", "wrong")):
        assert outcome("2；30", rf"\boxed{{{premise}=2小时30分}}") == verdict
    assert (
        outcome("3；50；2；5", r"\boxed{3吨50千克；2米5厘米}") == outcome("2；30；150", "2小时30分，150分") == "correct"
    )
    assert (
        outcome("3；50；2；5", r"\boxed{3吨50千克；5米2厘米}") == outcome("2；30；150", "2小时30分，160分") == "wrong"
    )
