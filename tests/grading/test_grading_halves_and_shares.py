"""What a Chinese sentence says of its quantity: the half of the day, the "per" of a rate, the whole of a share.

For: harness.grading.find.chinese_answers, harness.grading.compare.canonical.
"""

from __future__ import annotations

from itertools import product

import pytest

import harness
from harness.answers.grammar.tree import names
from tests.budget import share_of, thinned
from tests.grading.test_grading_chinese_sentences import outcome

MORNING = sorted(names("凌晨 清晨 早晨 早上 上午"))
EVENING = sorted(names("下午 傍晚 晚上"))
UNREAD = sorted(
    names("半夜 深夜 夜里 今晨 明早 昨晚 当晚 次日 第二天 第二天下午 第二天上午 明天上午 昨天下午 后天 周日")
)
EVENTS = sorted(names("结束 出发 到达 放学 开会 相遇 发车 放映"))
FRAMES = ("答：{}{}。", "答：他们在{}{}。", "所以电影在{}{}。", "答：火车{}{}。", "\\boxed{{{}{}}}", "**答：{}{}。**")
"""Half of the day, or a day, before a time; what happens then; the sentence around both."""


@pytest.mark.parametrize("event", thinned(EVENTS))
def test_a_time_includes_the_half_of_the_day_before_it(event: str) -> None:
    accepted = [
        reply
        for frame, clock, hour in share_of(product(FRAMES, ("{}时30分", "{}点30分", "{}:30"), (5, 6, 7)))
        for words, reference in (
            *((word, f"下午{hour}时30分") for word in (*MORNING, *UNREAD)),
            *((word, f"上午{hour}时30分") for word in (*EVENING, *UNREAD)),
            *((word, f"{hour}:30") for word in (*EVENING, *UNREAD)),
        )
        if outcome(reference, reply := frame.format(words + clock.format(hour), event)) == "correct"
    ]
    assert accepted == []


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("event", EVENTS)
def test_the_same_half_of_the_day_is_right(frame: str, event: str) -> None:
    for reference, words, clock in (
        ("下午4时10分", "下午", "4时10分"),
        ("下午4时10分", "下午", "4点10分"),
        ("下午4时10分", "", "16:10"),
        ("16:10", "下午", "4:10"),
        ("上午9时", "上午", "9时"),
        ("上午7:30", "早晨", "7点30分"),
        ("9:40", "上午", "9时40分"),
        ("9:40", "", "9:40"),
    ):
        assert outcome(reference, frame.format(words + clock, event)) == "correct", (reference, words, clock)


PER = sorted(names("小时 分钟 天 支 本 箱 人 千克 米 辆车 个工人 小组 瓶 行"))
DEEDS = ("", "的价格是", "平均", *sorted(names("是 行驶 加工 运 重 要付 有 用 生产")))
RATE_FRAMES = ("答：{}。", "答：平均{}。", "所以{}。", "\\boxed{{{}}}", "3×4=12，所以{}。")
QUANTITIES = sorted(names("12千米 12元 12个 12千克 12小时 12人"))


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_a_rate_is_not_its_quantity(quantity: str) -> None:
    accepted = [
        reply
        for per, deed, frame in share_of(product(PER, DEEDS, RATE_FRAMES))
        if outcome(quantity, reply := frame.format(f"每{per}{deed}{quantity}")) == "correct"
    ]
    assert accepted == []


def test_a_rate_beside_a_rate_and_beside_a_bare_number_is_read() -> None:
    for reference, reply, verdict in (
        ("40千米/小时", "答：汽车每小时行驶40千米。", "correct"),
        ("40千米/小时", "答：汽车每分钟行驶40千米。", "wrong"),
        ("40千米", "答：汽车1小时行驶40千米。", "undecided"),
        ("40千米", "答：汽车一分钟行驶40千米。", "undecided"),
        ("40千米", "答：汽车11分钟行驶40千米。", "correct"),
        ("40", "答：每人加工40个。", "correct"),
        ("40个/小时", "答：每人每小时加工40个。", "undecided"),
        ("12元", "答：这支笔的价格是12元。", "correct"),
        ("每小时的路程是12千米", "\\boxed{每小时的路程是12千米}", "correct"),
    ):
        assert outcome(reference, reply) == verdict, reply


WHOLES = ("还剩绳子的", "占全长的", "用去了这根绳子的", "运走了一批货的", "剩下的是绳子的", "还剩", "用去", "吃了")
SHARES = ("1/2", "$\\frac{1}{2}$", "二分之一", "50%", "一半", "0.5")


@pytest.mark.parametrize("reference", ["1/2米", "0.5千克", "1/2小时", "二分之一米"])
def test_a_share_of_a_whole_is_no_quantity_with_a_unit(reference: str) -> None:
    accepted = [
        reply
        for whole, share, frame in product(WHOLES, SHARES, ("答：{}。", "所以{}。", "\\boxed{{{}}}"))
        if outcome(reference, reply := frame.format(whole + share)) == "correct"
    ]
    assert accepted == []


def test_a_share_beside_a_share_and_a_quantity_beside_its_unit_are_right() -> None:
    for reference, reply in product(("1/2", "\\frac{1}{2}", "50%", "二分之一"), ("还剩绳子的1/2", "占全长的1/2")):
        assert outcome(reference, f"答：{reply}。") == "correct", (reference, reply)
    for reply in ("答：还剩1/2米。", "答：长度是1/2米。", "答：还剩0.5米。", "\\boxed{1/2}"):
        assert outcome("1/2米", reply) == "correct", reply


@pytest.mark.parametrize("figure", sorted(names("三角形 平行四边形 正五边形 五角星 六边形 四棱柱 十字形 圆")))
def test_the_name_of_a_figure_is_no_number(figure: str) -> None:
    assert outcome("20平方厘米", f"8×5÷2=20，所以{figure}的面积是20平方厘米。") == "correct"
    assert outcome("20平方厘米", f"8×5÷2=20，所以{figure}的面积是22平方厘米。") != "correct"
    assert outcome("20平方厘米", f"8×5÷2=20，所以两个{figure}的面积是20平方厘米。") != "correct"


@pytest.mark.parametrize(
    ("reference", "reply"),
    [
        ("160元", "降价前售价160元"),
        ("160元", "活动前单价160元"),
        ("160元", "涨价以前定价160元"),
        ("24厘米", "原正方形周长24厘米"),
        ("350千米", "还要5小时行驶350千米"),
        ("350千米", "还需5小时行驶350千米"),
        ("45千克", "原有3袋大米重45千克"),
    ],
)
def test_a_word_that_shifts_a_clause_to_another_time_leaves_it_undecided(reference: str, reply: str) -> None:
    for frame in ("答：{}。", "所以{}。", "\\boxed{{{}}}"):
        assert outcome(reference, frame.format(reply)) == "undecided"


def test_equal_times_of_day_have_one_vote() -> None:
    replies = ("下午4时10分", "下午4点10分", "16时10分", "16:10", "4:10 p.m.", "下午4:10", "4时10分")
    assert {harness.grade("下午4时10分", f"\\boxed{{{reply}}}").vote for reply in replies} == {"16:10"}
    assert {harness.grade("9:05", f"\\boxed{{{reply}}}").vote for reply in ("9:05", "上午9时5分", "9时5分")} == {"9:5"}
    assert harness.grade("下午4时10分", "\\boxed{下午4时11分}").vote == "16:11"
    assert harness.grade("17小时35分", "\\boxed{17时35分}").vote == harness.grade("17小时35分", "\\boxed{1055分}").vote


def test_a_mark_is_a_judgement_also_as_the_reference() -> None:
    for reference, reply, verdict in (
        ("√", "\\boxed{\\checkmark}", "correct"),
        ("√", "\\boxed{×}", "wrong"),
        ("×", "\\boxed{√}", "wrong"),
        ("×", "2是偶数但不是合数。这句话是错的。", "correct"),
        ("×", "2是偶数但不是合数。这句话是对的。", "wrong"),
        ("√", "所以这个判断是正确的，打√。", "undecided"),
        ("×", "所以这个判断是正确的，打√。", "undecided"),
    ):
        assert outcome(reference, reply) == verdict, reply
