r"""The Chinese clause around a box, made by the thousand: no unlisted word behind a box leaves it standing.

For: harness.grading.find.box_clause.
"""

from __future__ import annotations

import random
from itertools import product

import pytest

from tests.budget import examples, share_of
from tests.grading.outcomes import outcome

UNITS = ["公顷", "米", "千克", "元", "小时", "升", "个", "天", "平方厘米"]
UNKNOWN = [
    "亩", "里", "尺", "寸", "丈", "钱", "担", "磅", "打", "海里", "光年", "英亩", "加仑", "盎司",
    "品脱", "季度", "世纪", "刻", "折", "成", "级", "摩尔", "流明", "法拉", "微米", "纳米",
    "港元", "新台币", "石", "顷",
]  # fmt: skip
NUMBERS = [r"\boxed{4}", r"$\boxed{4}$", r"**\boxed{4}**", r"\(\boxed{4}\) ", r"$\boxed{\frac{8}{2}}$"]
"""Boxes with the number 4."""


@pytest.mark.parametrize("unit", UNITS)
def test_an_unknown_unit_behind_a_box_belongs_to_its_number(unit: str) -> None:
    for word, box in share_of(product(UNKNOWN, NUMBERS)):
        reply = f"所以是{box}{word}。"
        assert outcome(f"4{unit}", reply) != "correct", reply
        assert outcome("4", reply) == "undecided", reply
    for box in NUMBERS:
        assert outcome(f"4{unit}", f"所以是{box}{unit}。") == "correct", box


@pytest.mark.parametrize("word", [word for word in UNKNOWN if word not in ("打", "成", "折")])
def test_an_unknown_unit_is_the_same_in_the_reference(word: str) -> None:
    for box in NUMBERS[:-1]:
        assert outcome(f"4{word}", f"共{box}{word}。") == "correct", box
        assert outcome(f"5{word}", f"共{box}{word}。") != "correct", box


REFERENCES = ["37升", "37米", "37元", "37个", "37"]
GOES_ON = [
    "的一半", "以下", "以上", "以内", "左右", "多", "之间", "的两倍", "的3倍", "的平方", "的倒数",
    "减去3", "加上5", "至40升", "到40", "不到", "封顶", "有余", "出头", "才怪", "或40升", "吗", "呢",
    "是错的", "不对", "上下", "整的一半", "除以2", "～40升", "-40升", "乘以2", "+5升",
]  # fmt: skip
SIGNS = (
    "的一是不人在有这个上们来到时大为子说年着就那和要出也得里后自以会家可下而过天去能对小多然于心学么之都"
    "好看起发当没成只如事把还用第样道想作种开见明问力理尔点文几定本公特做外孩相西果走将月十实向声车全信重"
    "三机工物气每并别真打太新比才便夫再书部水像眼等体却加电主界门利海受听表德少克代员许先口由死安写性马光"
    "白或住难望教命花结乐色更拉东神记处让母父应直字场平报友关放至张认接告入笑内英军候民岁往何度山觉路带万"
    "男边风解叫任金快原吃妈变通师立象数四失满战远格士音轻目条呢病始达深完今提求清王化空业思切怎非找片罗钱"
    "吗语元喜曾离飞科言干流欢约各即指合反题必该论交终林请医晚制球决传画保读运及则房早院量苦火布品近坐产答"
    "星精视五连司巴奇管类未朋且婚台夜青北队久乎越观落尽形影红爸百令周吧识步希亚术留市半热送兴造谈容极随演"
    "收首根讲整式取照办强石古华谈减倍"
)
"""Common Chinese characters, of which random continuations are made."""

MEASURED = ("", "升", "的水", "的油", "的路", *"水油酒药鱼铁金布土钱路电米花")
"""What may stand behind a number or its unit: the unit, and nouns of what has a volume."""

CLOSED = (
    "",
    "了",
    "水",
    "是正确的",
    "即为所求",
    "就是答案",
    "是本题的答案",
    "，验算正确",
    "。单位换算正确",
    "（本题）",
)
"""What may stand behind a box and leave it standing."""


@pytest.mark.parametrize("reference", REFERENCES)
def test_what_goes_on_behind_a_box_leaves_it_undecided(reference: str) -> None:
    unit = reference.removeprefix("37")
    boxes = [
        rf"\boxed{{{reference}}}",
        rf"$\boxed{{37\text{{{unit}}}}}$",
        rf"\boxed{{37}}{unit}",
        rf"$\boxed{{37}}${unit}",
    ]
    for words, box in product(GOES_ON, boxes):
        for end in ("", "。", "，答毕。"):
            assert outcome(reference, f"所以有{box}{words}{end}") != "correct", (box, words)
    for words, box in product(CLOSED, boxes):
        if words != "水" or unit == "升":
            assert outcome(reference, f"所以有{box}{words}") == "correct", (box, words)
            assert outcome(f"38{unit}", f"所以有{box}{words}") == "wrong", (box, words)


@pytest.mark.parametrize(
    "box", [r"\boxed{37升}", r"$\boxed{37\text{ 升}}$", r"\boxed{37}升", r"\boxed{37}", r"$\boxed{37}$升"]
)
def test_random_words_behind_a_box_leave_it_undecided(box: str) -> None:
    draw = random.Random(box)
    for _ in range(examples(600)):
        words = "".join(draw.choices(SIGNS, k=draw.randint(1, 6)))
        if words.rstrip("了啊呀哦") not in MEASURED:
            assert outcome("37升", f"所以有{box}{words}。") != "correct", words


@pytest.mark.parametrize("denial", [
    "所以不是", "并非", "绝不是", "不可能是", "答案不为", "没有", "不到", "并不是真的有", "未达到",
    "不等于", "结果非", "所以这不应该是", "是否为",
])  # fmt: skip
def test_a_denial_before_a_box_leaves_it_undecided(denial: str) -> None:
    for box in (r"\boxed{37升}", r"$\boxed{37\text{升}}$", r"\boxed{37}升"):
        assert outcome("37升", f"{denial}{box}。") == outcome("38升", f"{denial}{box}。") == "undecided", box
    assert outcome("A", rf"{denial}\boxed{{A}}。") == "undecided"


@pytest.mark.parametrize("lead", [
    "不会游泳的有", "不同的取法共有", "没有参加的人数是", "不是36升，而是", "不难看出答案是",
    "未知数的值为", "不等式的解是", "分别是", "不超过10的质数有", "毫无疑问是", "无论如何都是",
    "所以，", "答：", "",
])  # fmt: skip
def test_a_denial_that_governs_another_word_leaves_the_box(lead: str) -> None:
    for box in (r"\boxed{37升}", r"$\boxed{37\text{升}}$", r"\boxed{37}升"):
        assert outcome("37升", f"{lead}{box}。") == "correct", box
        assert outcome("38升", f"{lead}{box}。") == "wrong", box


@pytest.mark.parametrize(("reference", "reply", "expected"), [
    ("5个苹果", r"\boxed{5个}苹果", "correct"), ("5个苹果", r"\boxed{5个}梨", "undecided"),
    ("5个苹果", r"$\boxed{5\text{个}}$苹果", "correct"), ("40千米/时", r"\boxed{40千米}每小时", "correct"),
    ("40千米", r"\boxed{40千米}每小时", "undecided"), ("37毫升", r"\boxed{37}升水", "wrong"),
    ("4元", r"\boxed{4}元钱", "correct"), ("星期三", r"所以是\boxed{星期三}的前一天", "undecided"),
    ("星期三", r"所以是\boxed{星期三}。", "correct"), ("3倍", r"是\boxed{3}倍多", "undecided"),
    ("x=5", r"所以\boxed{x=5}是方程的一半", "undecided"), ("37升", "$$\\boxed{37升}$$\n以上过程完毕。", "correct"),
])  # fmt: skip
def test_the_words_are_read_as_though_they_stood_in_the_box(reference: str, reply: str, expected: str) -> None:
    assert outcome(reference, reply) == expected
