"""Values between semicolons may fill blanks in their order; the card says so. The self-test names such references."""

from __future__ import annotations

from itertools import product

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
