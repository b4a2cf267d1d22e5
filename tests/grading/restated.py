r"""Replies in Chinese that say their answer twice, or explain it behind 【答案】, and their wrong twins.

    restated    a box, and a sentence behind it that says the value again: `$\boxed{x\geq2}$` 因此，x≥2。
    headed      a heading 答案, and the answer on a line of its own: `### 答案`, `**错误**`
    explained   the answer, and a section with its explanation: 【答案】x>3 【解析】移项得…

A right reply gives its reference; a wrong twin has another value in one of the two places, or denies, doubts or
widens the value behind it. Nothing in a wrong twin may be graded as correct.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Restated(NamedTuple):
    """A value in notations of equal meaning, and others that differ from it.

    key: the reference. box: the value in a box. said: sentences that say it again. other: the same with another value.
    """

    key: str
    box: str
    said: tuple[str, ...]
    other: tuple[str, ...]


VALUES = (
    Restated(
        "x≥2",
        r"x\geq2",
        ("自变量x的取值范围是x≥2", "x≥2", r"x的取值范围为$x\ge 2$"),
        ("自变量x的取值范围是x>2", "x≥12", r"x的取值范围为$x\le 2$"),
    ),
    Restated("x>3", "x>3", ("不等式的解集是x>3", "原不等式的解集为3<x"), ("不等式的解集是x<3", "不等式的解集是x>-3")),
    Restated(
        "-1<x≤4",
        r"-1<x\leq4",
        ("不等式组的解集是-1<x≤4", "x>-1且x≤4", r"解集为$-1<x\leq 4$"),
        ("不等式组的解集是-1≤x≤4", "x>1且x≤4", "解集为x≤4"),
    ),
    Restated(
        "2√3",
        r"2\sqrt{3}",
        ("原式=2√3", r"原式=$2\sqrt{3}$", "AB的长是2√3", "原式=√12=2√3"),
        ("原式=3√3", "原式=2√5", "AB的长是√3", "原式=√12=4√3"),
    ),
    Restated(
        "(2,-1)",
        "(2,-1)",
        ("对称点A′的坐标为（2，－1）", "对称点的坐标是(2,-1)", "点A′的坐标为A′(2,-1)"),
        ("对称点A′的坐标为（2，1）", "对称点的坐标是(-1,2)", "点A′的坐标为A′(-2,-1)"),
    ),
    Restated(
        "1.2×10^4",
        r"1.2\times 10^4",
        ("用科学记数法表示是1.2×10^4", "12000=1.2×10⁴", r"这个数用科学记数法表示为$1.2\times10^{4}$"),
        ("用科学记数法表示是1.2×10^5", "12000=2×10⁴", r"这个数用科学记数法表示为$1.2\times10^{-4}$"),
    ),
    Restated(
        "1、2、3、6、9、18",
        "1,2,3,6,9,18",
        (
            "18的因数有1，2，3，6，9，18",
            "18的所有因数是1、2、3、6、9、18",
            "18的因数有1、2、3、6、9、18，共6个",
        ),
        ("18的因数有1，2，3，6，18", "18的所有因数是1、2、3、6、8、18", "18的因数有1、2、3、6、9、18、36，共7个"),
    ),
    Restated(
        "商5余2",
        r"\text{商}5\text{余}2",
        ("47÷9=5……2", "商是5，余数是2", "商5余2"),
        ("47÷9=5……3", "商是2，余数是5", "商4余2"),
    ),
    Restated(
        "鸡23只，兔12只",
        r"\text{鸡}23\text{只，兔}12\text{只}",
        ("鸡有23只，兔有12只", "兔有12只，鸡有23只"),
        ("鸡有12只，兔有23只", "鸡有23只，兔有13只"),
    ),
    Restated(
        "长12厘米，宽6厘米",
        r"\text{长}12\text{厘米，宽}6\text{厘米}",
        ("长是12厘米，宽是6厘米", "长为12厘米，宽为6厘米"),
        ("长是6厘米，宽是12厘米", "长为12厘米，宽为8厘米"),
    ),
    Restated(
        "1/8；5/8",
        r"\frac18,\frac58",
        ("两个空依次填1/8；5/8", "依次填1/8，5/8"),
        ("两个空依次填1/8；3/8", "依次填7/8，5/8"),
    ),
    Restated(
        "x=3或x=-2",
        r"x=3\text{或}x=-2",
        ("方程的解是x₁=3，x₂=-2", "方程的解为x=3或x=-2", "$x_1=3$，$x_2=-2$"),
        ("方程的解是x₁=3，x₂=2", "方程的解为x=-3或x=-2", "$x_1=5$，$x_2=-2$"),
    ),
    Restated(
        "x=3，y=4",
        "x=3,y=4",
        ("方程组的解是x=3，y=4", "x=3，y=4"),
        ("方程组的解是x=4，y=3", "x=-3，y=4"),
    ),
    Restated("y=2x+1", "y=2x+1", ("函数的解析式是y=2x+1", "y=2x+1"), ("函数的解析式是y=3x+1", "y=-2x+1")),
    Restated(
        "(x+2)(x-2)",
        "(x+2)(x-2)",
        ("原式=(x+2)(x-2)", "x²-4=(x+2)(x-2)"),
        ("原式=(x+1)(x-2)", "x²-4=(x-2)(x-2)"),
    ),
    Restated(
        "错",
        r"\text{错误}",
        ("原题的说法错误", "这句话是错误的", "这个说法错误", "该命题是错误的", "这句话是错的"),
        ("原题的说法正确", "这句话是正确的", "这个说法正确", "该命题是正确的", "这句话是对的"),
    ),
    Restated(
        "√",
        r"\text{正确}",
        ("这句话是正确的", "这个说法正确", "原题的说法正确"),
        ("这句话是错误的", "这个说法不正确", "原题的说法错误"),
    ),
)

LEADS = ("因此，", "所以，", "综上，")
DOUBTS = (
    "因此，可能{0}。",
    "因此，{0}，或者不是。",
    "因此，{0}是不对的。",
    "因此，{0}这个结果不对。",
    "{0}吗？不对。",
)
"""Sentences that deny or doubt what they say again."""

SETTINGS = ("$\\boxed{{{0}}}$\n\n", "\\boxed{{{0}}}\n\n", "计算过程略。\n\n$$\\boxed{{{0}}}$$\n")


def restated() -> Iterator[tuple[bool, str, str]]:
    """Yield (whether it is right, reference, reply) for each value that is said again behind its box."""
    for number, value in enumerate(VALUES):
        for index, (said, other) in enumerate(zip(value.said, value.other, strict=True)):
            lead, setting = LEADS[(number + index) % 3], SETTINGS[(number + index) % 3].format(value.box)
            yield True, value.key, f"{setting}{lead}{said}。"
            yield False, value.key, f"{setting}{lead}{other}。"
            yield True, value.key, f"{setting}所以{said}。"
        setting = SETTINGS[0].format(value.box)
        yield False, value.key, setting + DOUBTS[number % len(DOUBTS)].format(value.said[0])
        yield False, value.key, setting + DOUBTS[(number + 2) % len(DOUBTS)].format(value.said[-1])


HEADINGS = ("### 答案\n\n{0}", "## 最终答案\n\n**{0}**", "### 答案\n\n**{0}**", "### 答案：\n**{0}**")
HEADED = (
    ("√", ("对", "正确"), ("错误", "对吗？不对", "可能对")),
    ("错", ("错误", "错"), ("正确", "不是错误", "对")),
    ("长12厘米，宽6厘米", ("长12厘米，宽6厘米", "长是12厘米，宽是6厘米"), ("长6厘米，宽12厘米", "长12厘米，宽7厘米")),
    ("x=3或x=-2", ("x₁=3，x₂=-2", "x=3或x=-2"), ("x₁=3，x₂=2", "x=3")),
    ("商5余2", ("商5余2", "商是5，余数是2"), ("商2余5", "商5余3")),
    ("鸡23只，兔12只", ("鸡23只，兔12只",), ("鸡12只，兔23只", "鸡23只，兔不是12只")),
    ("x>3", ("x>3",), ("x<3", "x≥3或x<0")),
    ("36平方厘米", ("36平方厘米",), ("36厘米", "约36平方厘米")),
)
WORK = ("", "### 解题步骤\n\n1. 先读题，列出条件。\n2. 再计算。\n\n")


def headed() -> Iterator[tuple[bool, str, str]]:
    """Yield (whether it is right, reference, reply) for each answer under a heading."""
    for number, (key, rights, wrongs) in enumerate(HEADED):
        for is_right, values in ((True, rights), (False, wrongs)):
            for index, value in enumerate(values):
                for step in (0, 2):
                    heading = HEADINGS[(number + index + step) % len(HEADINGS)]
                    yield is_right, key, WORK[(index + step // 2) % 2] + heading.format(value)


SECTIONS = (
    "### 答案\n\n{0}\n\n### 解析\n\n{1}",
    "【答案】{0}\n【解析】{1}",
    "**答案**：{0}\n\n**解析**：{1}",
    "答案：{0}\n\n解析：{1}",
    "**答案：** {0}\n\n### 解析\n\n{1}",
)
EXPLAINED = (
    (
        "x>3",
        "x>3",
        (
            "移项得3x-x>1+5；合并同类项得2x>6；系数化为1。",
            "移项，得2x>6。系数化为1，得x>3。",
            "移项得2x>6，所以x>3。故答案为：x>3。",
        ),
        ("移项得2x>6，所以x>2。", "移项得2x>6。故答案为：x>6。", "移项得2x>6。等等，我算错了，应该是x>4。"),
    ),
    (
        "-1<x≤4",
        "x>-1且x≤4",
        ("由x+1>0，得x>-1；由2x-3≤5，得x≤4。", "解第一个不等式得x>-1，解第二个不等式得x≤4。所以解集是-1<x≤4。"),
        ("由x+1>0，得x>-1；由2x-3≤5，得x≤4。所以答案是x≤4。", "由x+1>0，得x>-1。所以解集是-1<x≤1。"),
    ),
    (
        "√",
        "正确",
        ("0不能作除数，没有一个数与0相乘得1。", "三角形内角和是180°，所以这句话是正确的。", "根据定义可知没有例外。"),
        ("三角形内角和是180°，所以这句话是错误的。", "0不能作除数。更正：答案应为错误。", "故答案为：错误。"),
    ),
    (
        "错",
        "错误",
        ("0除以任何非0的数都得0，而0不能作除数。", "两个质数的和可能是偶数。因此，这句话是错误的。"),
        ("两个质数的和可能是偶数。因此，这句话是正确的。", "故答案为：正确。"),
    ),
    (
        "2√3",
        "2√3",
        ("12=4×3，4的算术平方根是2。", "原式=√(4×3)=2√3。", "把12分解为4×3。故答案为2√3。"),
        ("把12分解为4×3。故答案为3√2。", "把12分解为4×3。所以原式=4√3。", "12=4×3。其实答案写错了。"),
    ),
    (
        "24元",
        "24元",
        (
            "每本3元，买8本，3×8=24。",
            "单价乘数量得总价，3×8=24（元）。",
            "1. 单价是3元。\n2. 数量是8本。\n3. 总价是24元。",
        ),
        ("每本3元，买8本。所以一共要25元。", "3×8=24。但是还要加上2元邮费，一共26元。", "故答案为：21元。"),
    ),
    (
        "x=3或x=-2",
        "x=3或x=-2",
        ("因式分解得(x-3)(x+2)=0，所以x-3=0或x+2=0。", "用十字相乘法。所以x₁=3，x₂=-2。"),
        ("用十字相乘法。所以x₁=3，x₂=2。", "因式分解得(x-3)(x+2)=0。故答案为x=3。"),
    ),
)


def explained() -> Iterator[tuple[bool, str, str]]:
    """Yield (whether it is right, reference, reply) for each answer with a section that explains it."""
    for number, (key, answer, rights, wrongs) in enumerate(EXPLAINED):
        for is_right, texts in ((True, rights), (False, wrongs)):
            for index, text in enumerate(texts):
                for step in (0, 1):
                    yield is_right, key, SECTIONS[(number + index + step) % len(SECTIONS)].format(answer, text)
