"""What says an answer again behind it is read as the answer is, and an explanation in Chinese states no further one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

import harness
from harness.benchmarks.drafts import kind_of
from harness.core.records import AnswerKind, GradeRules, VerdictName
from harness.grading.verdict import grade
from tests.grading import restated
from tests.grading.given import RULES, question, sample
from tests.grading.outcomes import outcome

Replies = Callable[[], Iterator[tuple[bool, str, str]]]


def verdict_of(key: str, reply: str, kind: AnswerKind, rules: GradeRules = RULES) -> VerdictName:
    """The verdict on a reply to a question of this kind."""
    return grade(question(key, kind=kind, rules=rules), sample(reply)).verdict


@pytest.mark.parametrize("replies", [restated.restated, restated.headed, restated.explained])
def test_a_value_said_again_keeps_the_answer_and_another_value_opens_it(replies: Replies) -> None:
    for is_right, key, reply in replies():
        verdict = verdict_of(key, reply, kind_of(key))
        assert (verdict == "correct") is is_right, (key, reply, verdict)


@pytest.mark.parametrize("replies", [restated.restated, restated.headed, restated.explained])
def test_the_outcomes_of_tests_are_those_of_users(replies: Replies) -> None:
    for _, key, reply in replies():
        assert outcome(key, reply) == harness.grade(key, reply).outcome, (key, reply)


def test_there_are_as_many_wrong_twins_as_right_replies() -> None:
    labels = [label for make in (restated.restated, restated.headed, restated.explained) for label, _, _ in make()]
    assert (sum(labels), len(labels) - sum(labels)) == (156, 153)


@pytest.mark.parametrize(
    ("key", "behind", "is_right"),
    [
        ("5", "因此，3x=15。", True),
        ("5", "因此，AB=3，BC=4，AC=5。", True),
        ("5", "因此，|−5|=5。", True),
        ("5", "因此，|−5|=6。", False),
        ("x≥2", "因此，x≥2或x≤-2。", False),
        ("x≥2", "因此，x≥2且x≠3。", False),
        ("x≥2", "因此，当a>0时，x≥2；当a<0时，x≤2。", False),
        ("2√3", "因此，原式=±2√3。", False),
        ("1、2、3、6", "因此，6的因数有1，2，3，共3个。", False),
        ("鸡23只，兔12只", "因此，笼子里的鸡有23只，兔有12只。", True),
        ("鸡23只，兔12只", "因此，笼子里的鸡有12只，兔有23只。", False),
        ("鸡23只，兔12只", "因此，鸡有23只，兔有12只是错的。", False),
        ("错", "因为0也是整数，所以原说法错误。", True),
        ("错", "因为0也是整数，所以原说法正确。", False),
        ("错", "我的判断错误。", False),
        ("错", "上面的结论是错误的。", False),
    ],
)
def test_a_whole_clause_behind_a_box_is_compared(key: str, behind: str, is_right: bool) -> None:
    assert (verdict_of(key, f"\\boxed{{{key}}}\n\n{behind}", kind_of(key)) == "correct") is is_right


@pytest.mark.parametrize("title", ["更正", "结论", "答案"])
def test_another_title_ends_an_explanation(title: str) -> None:
    reply = f"**答案**：x>3\n\n**解析**：移项得2x>6。\n\n**{title}**：x>4。"
    assert verdict_of("x>3", reply, "expression") != "correct"


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("### 答案\n\n**对**\n\n### 解析\n\n三角形内角和是180°。", "correct"),
        ("### 答案\n\n**对**\n\n### 解析\n\n所以这句话是错误的。", "undecided"),
        ("### 答案\n\n**对**\n\n其实不对。", "undecided"),
        ("### 答案\n\n对\n\n错误", "undecided"),
        ("### 小明的答案\n\n对\n\n### 答案\n\n错误", "wrong"),
    ],
)
def test_a_heading_labels_only_a_line_of_its_own(reply: str, verdict: VerdictName) -> None:
    assert verdict_of("√", reply, "text") == verdict


@pytest.mark.parametrize(
    "behind",
    [
        "因此，" + "a" * 5_000 + "<b=1",
        "so " + "a" * 60 + "! = 3",
        "### 答案\n" * 800,
        "解析：" * 1_500,
        "因此，" + "1，" * 2_000,
    ],
)
def test_a_hostile_text_behind_a_box_takes_no_time_worth_a_worker(behind: str) -> None:
    started = time.process_time()
    verdict_of("5", f"\\boxed{{5}}\n\n{behind}", "integer")
    assert time.process_time() - started < 2


IN_BRACKETS = (
    ("x≥3", "\\boxed{x\\geq3}", "x≥3"), ("6.954×10^8", "\\boxed{6.954\\times10^8}", "6.954×10^8"),
    ("2√2", "\\boxed{2\\sqrt{2}}", "2√2"), ("8a^6b^3", "\\boxed{8a^6b^3}", "8a⁶b³"), ("9……5", "\\boxed{9……5}", "9余5"),
    ("错", "\\boxed{×}", "错误"), ("-2<x≤4", "$\\boxed{-2<x\\le4}$", "-2<x≤4"),
    ("鸡12只，兔8只", "\\boxed{鸡12只，兔8只}", "鸡有12只，兔有8只"), ("8米", "\\boxed{8米}", "800厘米"),
)  # fmt: skip
"""A reference, a box that gives it, and what brackets behind the box may hold: the same value in another spelling."""


def test_the_value_of_a_box_again_in_brackets_keeps_it_and_another_one_or_a_correction_opens_it() -> None:
    for key, box, again in IN_BRACKETS:
        for lead in ("即", "也就是", ""):
            reply = f"{box}（{lead}{again}）"
            assert verdict_of(key, reply, kind_of(key)) == "correct", reply
            assert verdict_of(key, f"{reply}。等等，算错了。", kind_of(key)) != "correct"
            assert verdict_of(key, f"{reply}，所以答案是{again}。", kind_of(key)) == "correct", reply
    twins = (
        ("x≥3", "x≥2"),
        ("6.954×10^8", "6.954×10^7"),
        ("2√2", "3√2"),
        ("9……5", "9余4"),
        ("错", "正确"),
        ("8米", "80厘米"),
    )
    boxes = {key: box for key, box, _ in IN_BRACKETS}
    for key, other in twins:
        for held in (f"即{other}", f"应为{other}", f"更正：{other}", f"不是{key}"):
            assert verdict_of(key, f"{boxes[key]}（{held}）", kind_of(key)) != "correct", (key, held)
    # A remark in brackets is none of the values.
    for remark in ("验算正确", "最简形式", "见上"):
        assert verdict_of("5", f"\\boxed{{5}}（{remark}）", "integer") == "correct"
    # A wrong answer stays wrong only if the brackets hold no right one.
    assert verdict_of("x≥3", "\\boxed{x\\geq2}（即x≥2）", "expression") == "wrong"
    assert verdict_of("x≥3", "\\boxed{x\\geq2}（即x≥3）", "expression") == "undecided"


TITLES = ("【解析】", "【详解】", "**解析**：", "解析：")
WORKS = (
    ("错", "错", ("2是偶数，但2不是合数。", "2是偶数，然而2是质数，不是合数。", "因为2是偶数，但合数没有2。")),
    ("√", "√", ("周长和面积的数值相等，但意义和单位都不同。", "数值相等，却意义不同。")),
    ("-2<x≤4", "-2<x\\le4", ("由2x>-4得x>-2；由x-1≤3得x≤4。", "由x-1≤3得x≤4，但两边方向不变。")),
    ("12元/千克", "12元/千克", ("总价÷数量=单价，30÷2.5=12（元）。", "重量不同，但单价不变，30÷2.5=12（元）。")),
)
"""A reference, the answer, and works with contrasts, or with equations that do not end in the answer."""

CORRECTIONS = {
    "错": (
        "但答案不是错。", "2是质数，所以这句话是对的。", "2是质数，这句话是对的。", "更正：对。", "但我算的不对。",
        "但不是错。", "但上面的不成立。", "但应该是对。",
    ),
    "12元/千克": (
        "30÷2=15，故答案为15元/千克。", "30÷2=15，所以答案是15元/千克。", "30÷2=15，答案应为15元/千克。",
        "等等，30÷2=15。", "30÷2=15，所以单价是15元/千克。", "30÷2.5=12，但不是12元/千克。",
        "但12元/千克不是单价。", "但不是单价。", "但这不是单价。",
    ),
    "-2<x≤4": (
        "由x-1≤3得x≤5，所以-2<x≤5。", "但x≤4不成立。", "但方程无解。", "更正：x≤4。", "所以，答案是x≤4。",
    ),
}  # fmt: skip


def test_a_contrast_or_an_equation_of_the_work_leaves_the_answer_and_a_correction_or_another_result_opens_it() -> None:
    for key, answer, works in WORKS:
        for title in TITLES:
            for shown in (f"【答案】{key}", f"【答案】\\boxed{{{answer}}}"):
                for work in works:
                    assert verdict_of(key, f"{shown}\n{title}{work}", kind_of(key)) == "correct", (shown, title, work)
                for correction in CORRECTIONS.get(key, ()):
                    reply = f"{shown}\n{title}{works[0]}{correction}"
                    assert verdict_of(key, reply, kind_of(key)) != "correct", reply


def test_the_work_behind_an_option_may_end_in_its_value_and_not_in_another_one() -> None:
    choices = ("3/5", "2/5", "2/3", "1/2")
    for shown in ("【答案】B", "【答案】\\boxed{B}", "【答案】\\boxed{B. \\frac{2}{5}}"):
        for title in TITLES:
            for work, is_right in (
                ("白球2个，可能性是2÷5=2/5。", True),
                ("白球2个，但球不同，可能性是2÷5=2/5。", True),
                ("白球3个，可能性是3÷5=3/5，故选A。", False),
                ("所以，可能性是3/5。", False),
                ("但B不对。", False),
                ("更正，选A。", False),
                ("但应选A。", False),
            ):
                option = question("B", kind="choice", choices=choices)
                reply = sample(f"{shown}\n{title}{work}")
                assert (grade(option, reply).verdict == "correct") is is_right, (shown, title, work)
