"""Values between semicolons may fill blanks in their order; the card says so. The self-test names such references."""

from __future__ import annotations

import pytest

from harness.benchmarks.drafts import kind_of
from harness.core.records import GradeRules, VerdictName
from harness.grading.selftest import self_test
from tests.grading.given import question
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
