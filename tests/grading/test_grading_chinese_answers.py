"""Sentences that answer in Chinese, behind 答： and at the end of a reply: each right one, and hundreds of wrong twins.

For: harness.grading.find.chinese_answers.
"""

from __future__ import annotations

from itertools import product

import pytest

import harness
from harness.answers.grammar.tree import names
from tests.budget import share_of, thinned
from tests.grading.test_grading_chinese_sentences import outcome

ANSWERS = (
    ("3元", "练习本的单价是{}", "3元", "3角 4元 30元"),
    ("12元", "应找回{}", "十二元", "十二角 十元 二十元"),
    ("3.6立方米", "这个水箱能装{}水", "3.6立方米", "3.6平方米 36立方米 3.6升"),
    ("8.6元", "一支钢笔比一支铅笔贵{}", "8元6角", "6元8角 8.6角 86元"),
    ("25%", "男生比女生多{}", "百分之二十五", "百分之二十 75%"),
    ("5/4", "两个分数的和是{}", "5/4", "4/5 1/4 5"),
    ("5/6", "修路队两天一共修了这条路的{}", "六分之五", "五分之六 6/5 1/6"),
    ("60%", "他已经看了全书的{}", "60%", "40% 6%"),
    ("4箱", "这辆车运{}", "4箱", "5箱 4吨 40箱"),
    ("120棵", "一共要种{}树", "120棵", "12棵 120行 130棵"),
    ("60°", "第三个角是{}", "60度", "120度 60米 6度"),
    ("13℃", "这一天的温差是{}", "13摄氏度", "-13摄氏度 31摄氏度 13华氏度"),
    ("-5℃", "当天的最低气温是{}", "零下5℃", "5℃ 零上5℃ 零下15℃"),
    ("24人", "参加合唱队的有{}", "24名", "42名 24组 20名"),
    ("9只", "笼子里有{}兔", "9只", "19只 9对 90只"),
    ("2:3:5", "三个班捐款的比是{}", "2:3:5", "5:3:2 2:3:4 3:2:5"),
    ("45分钟", "他写作业用了{}", "45分", "54分 45秒 45小时"),
    ("77℉", "今天的气温是{}", "77华氏度", "77摄氏度 -77华氏度 7华氏度"),
    ("25%", "今年的产量比去年增产{}", "二成五", "二成 五成二 25成"),
    ("180元", "这件衣服的现价是{}", "180元整", "180角 108元整 18元整"),
)
"""Rows (reference, sentence around its quantity, the quantity in words of the reply, other quantities)."""

OTHERS = tuple((reference, form, other) for reference, form, _, others in ANSWERS for other in others.split())
BEFORE = names(
    "不是 不到 并非 没有 至少 至多 最多 最少 超过 不足 大约 约 近 接近 多于 少于 大于 小于 高于 低于 "
    "可能是 也许是 大概是 比 第 每 除以 乘 减去 加上 一半是 不应是 估计是 误以为是 错算成 看作 原来的 "
    "再加 与 和 到 从 按 另外 7元和 2个的 八元或 两米加 3天"
)
"""What changes a quantity from before, or adds another one."""

BEHIND = names(
    "左右 以上 以下 多 不到 吗 的一半 的两倍 是错的 不对 ，不对 ，还差一点 或7个 和7个 除以2 乘2 加1 减1 "
    "才怪 的说法不正确 还是7个 ，也可能不是 ，但这是错的 ？"
)
AROUND = names(
    "如果{} 假设{} 若{} {}是错误的 小明说{} 有人认为{} 题目中{} 已知{} 不能说{} 难道{} 我猜{} 除非{} "
    "{}，而不是 要是{} 问题是{}吗 当{} 其中{} 假如{} 原来{} 本来{} 没人知道{} 别以为{} 令{}"
)
"""`BEHIND`, `AROUND`: what changes a quantity from behind, or its whole sentence."""

PLAIN = (
    ("x=2或x=3", "方程的两个解是x=2或x=3。", "方程的两个解是x=-2或x=-3。"),
    ("x=3,y=1", "方程组的解是x=3，y=1。", "方程组的解是x=1，y=3。"),
    ("星期四", "所以那一天是周四。", "所以那一天不是周四。"),
    ("对", "答：这句话是对的。", "答：这句话是错的。"),
    ("正确", "答：该命题正确。", "答：该命题不正确。"),
    ("3天", "答：他3天能看完这本书。", "答：他3天能看完这本书的一半。"),
    ("3天", "答：他3天能看完这本书。", "答：他3天看不完这本书。"),
    ("240千米", "答：两地相距240千米。", "答：行驶240千米要3小时。"),
    ("6米", "So the answer in Chinese is: 6米。", "So the answer in Chinese is: 6厘米。"),
    ("3元", "一共花了24元。练习本的单价是3元。", "所以答案是24元。练习本的单价是3元。"),
    ("16人", "先列式。参加的有16人。", "所以参加的有24人。没参加的有16人。"),
    ("7", "答：甲数除以乙数的商是7。", "答：小明说商是7。"),
    ("-1", "答：另一个根是-1。", "答：恐怕另一个根是-1。"),
    ("12元", "答：他有12元。", "答：比12元多3元。"),
    ("3元", "答：他有3元。", "答：比12元多3元。"),
)
"""Rows (reference, reply that states it, reply that does not)."""

IN_REPLY = ("解：3×5=15\n\n答：{}。", "先列式，再计算。\n{}。", "所以{}。", "**答：{}。**", "因此，{}")


@pytest.mark.parametrize(("reference", "form", "quantity", "others"), ANSWERS)
def test_a_sentence_with_one_quantity_behind_the_label_states_it(
    reference: str, form: str, quantity: str, others: str
) -> None:
    for frame in ("解：3×5=15\n\n答：{}。", "答：{}", "**答：{}。**"):
        assert outcome(reference, frame.format(form.format(quantity))) == "correct", form


@pytest.mark.parametrize(("reference", "form", "other"), OTHERS)
def test_another_value_or_unit_is_never_right(reference: str, form: str, other: str) -> None:
    for frame in IN_REPLY:
        reply = frame.format(form.format(other))
        assert outcome(reference, reply) != "correct", reply


@pytest.mark.parametrize(("reference", "form", "quantity", "others"), thinned(ANSWERS))
def test_a_sentence_that_denies_limits_or_supposes_its_quantity_is_never_right(
    reference: str, form: str, quantity: str, others: str
) -> None:
    twins = [form.format(before + quantity) for before in BEFORE]
    twins += [form.format(quantity + behind) for behind in BEHIND]
    twins += [around.format(form.format(quantity)) for around in AROUND]
    accepted = [
        reply
        for frame, twin in share_of(product(IN_REPLY, twins))
        if outcome(reference, reply := frame.format(twin)) == "correct"
    ]
    assert accepted == []


@pytest.mark.parametrize(("reference", "right", "twin"), PLAIN)
def test_a_plain_answer_is_read_and_its_twin_is_not(reference: str, right: str, twin: str) -> None:
    assert outcome(reference, right) == "correct"
    assert outcome(reference, twin) != "correct"


MODALS = names(
    "据说 恐怕 似乎 好像 未必 老师问 有同学说 他误认为 说不定 倘若 万一 谁说 听说 怀疑 要证明 目标是 不能确定 同桌算得"
)
ENDINGS = names(
    "吗？ ，这是不对的。 的可能性不大。 是假的。 这种说法有误。 ，应改为77。 ，还要再乘2。 ，不过还没有减去3。"
)
"""`MODALS`, `ENDINGS`: what stands before and behind a whole sentence and leaves it open."""


@pytest.mark.parametrize(("reference", "form", "quantity", "others"), ANSWERS)
def test_a_sentence_in_the_mouth_of_another_or_in_doubt_is_never_right(
    reference: str, form: str, quantity: str, others: str
) -> None:
    sentence = form.format(quantity)
    twins = [modal + sentence + "。" for modal in MODALS] + [sentence + ending for ending in ENDINGS]
    replies = [f"{lead}{twin}" for lead in ("答：", "先列式。\n", "所以") for twin in twins]
    assert [reply for reply in replies if outcome(reference, reply) == "correct"] == []


STATED = (
    ("80千米/时", "汽车的平均速度是{}", "80千米 80米/时 81千米/时 80千米/分"),
    ("-8℃", "半夜的气温是{}", "8℃ -9℃ -8℃以下"),
    ("9袋", "一共能装满{}", "10袋 9箱 9袋半"),
    ("6公顷", "这个果园占地{}", "6亩 7公顷 60公顷"),
    ("615人", "全校一共有学生{}", "616人 615万人 615人次"),
    ("3小时", "两车{}后相遇", "3分钟 4小时 3小时半"),
    ("6天", "两队合作{}完成", "7天 6小时 6天半"),
    ("x>3", "不等式的解集是{}", "x≥3 x<3 3>x y>3"),
    ("-1<x<3", "不等式组的解集是{}", "-1<x≤3 1<x<3"),
    ("(3,-2)", "对称点的坐标是{}", "(-2,3) (3,2)"),
)
"""Rows (reference, sentence around its value, other values)."""


@pytest.mark.parametrize(("reference", "form", "others"), STATED)
@pytest.mark.parametrize("lead", ["", "所以", "答："])
def test_speeds_points_solution_sets_and_times_are_stated(reference: str, form: str, others: str, lead: str) -> None:
    stated = form.format(reference)
    assert outcome(reference, f"我们先列式计算。{lead}{stated}。") == "correct"
    twins = [form.format(other) for other in others.split()]
    twins += [around.format(stated) for around in AROUND] + [f"{stated}{behind}" for behind in BEHIND]
    accepted = [twin for twin in twins if outcome(reference, f"我们先列式计算。{lead}{twin}。") == "correct"]
    assert accepted == []


HEDGES = names(
    "粗略地看， 粗略估计， 粗略地说， 粗略来看， 大约， 大约地说， 大概， 大概来说， 大致来看， 大体上， "
    "约略地， 约莫 近似地看， 近似计算， "
    "差不多， 估计 估计一下， 可能 也许 或许 恐怕 似乎 好像 看起来， 看上去， 多半 我猜"
)
"""Adverbs of approximation and of doubt before the statement of an answer."""

STATEMENTS = ("答案是{}", "正确的结果是{}", "最终答案是{}。", "所以答案是{}", "结果为{}", "答案：{}")
LEADS_WITH_SIGNS = names(
    "约分后， 约去公因数， 根据节约用水的要求， 化简约分得， 最近的一步之后， 由公约数可知， 因为π约等于3.14，所以 "
    "因为大约有3.5个，所以 由近似值3.14，所以"
)
"""Words that hold a sign of approximation and round nothing of what stands behind them."""


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("hedge", HEDGES)
def test_an_answer_behind_a_word_of_approximation_is_undecided(hedge: str, statement: str) -> None:
    for answer in ("11", "3.6立方米"):
        assert outcome(answer, hedge + statement.format(answer)) != "correct"
        assert outcome(answer, f"我们一步一步地算。{hedge}{statement.format(answer)}") != "correct"
    assert outcome("B", f"{hedge}答案是B") != "correct"


@pytest.mark.parametrize("lead", LEADS_WITH_SIGNS)
def test_a_sign_of_approximation_inside_another_word_or_before_another_number_hedges_nothing(lead: str) -> None:
    assert outcome("11", f"{lead}答案是11") == "correct"
    assert outcome("12", f"{lead}答案是11") == "wrong"


OTHER_WORDS = (
    (
        "25%",
        "全班的近视率是{}",
        "近视率是近{} 近视率约为{} 近视率约{} 近视率接近{} 近视人数约占全班的{} 近视人数约为全班人数的{}",
    ),
    (
        "25人",
        "附近的商店有{}",
        "附近的商店约有{} 附近的商店近{} 附近的商店有近{} 附近的商店约合有{} 附近的商店约相当于{}",
    ),
    ("25人", "最近的班有{}", "最近的班约有{} 最近的班大约有{} 最近的班有约{}"),
    ("25天", "约会的天数是{}", "约会的天数约是{} 约会的天数大约是{}"),
    ("25人", "约定的人数是{}", "约定的人数约是{} 约定的人数近{}"),
    ("25吨", "一共节约{}", "一共约节约{} 一共节约近{} 一共节约约{}"),
    ("25个", "邻近的村有{}", "邻近的村约有{} 邻近的村有近{}"),
    ("25元", "签约要付{}", "签约约要付{} 签约要付约{} 签约大概要付{}"),
)
"""Rows (reference, sentence with 近 or 约 inside another word, the same with a word for "about")."""


@pytest.mark.parametrize(("reference", "form", "twins"), OTHER_WORDS)
def test_near_and_about_in_chinese_round_a_quantity_only(reference: str, form: str, twins: str) -> None:
    for lead in ("答：", "所以", "我们先列式计算。"):
        assert outcome(reference, f"{lead}{form.format(reference)}。") == "correct", lead
        for twin in twins.split():
            assert outcome(reference, f"{lead}{twin.format(reference)}。") != "correct", twin


@pytest.mark.parametrize(
    ("reference", "reply", "reason"),
    [
        (
            "25人",
            "答：男生有25人，女生有20人。",
            "it has 2 quantities (25人, 20人), and which of them is the answer is not read",
        ),
        ("3元", "答：比12元多3元。", "it has 2 quantities (12元, 3元), and which of them is the answer is not read"),
        ("36千克", "答：苹果重36千克左右。", "its word 左右 may deny, limit or suppose 36千克"),
        (
            "36米",
            "这座楼房飘36米。",
            "before 36米 stands no verb of having, measuring or doing that is known: 这座楼房飘",
        ),
        ("24岁", "所以爸爸比小明大二十四岁。", "a sentence of this form is read behind 答： and 答案是 only"),
    ],
)
def test_an_undecided_sentence_names_its_obstacle(reference: str, reply: str, reason: str) -> None:
    verdict = harness.grade(reference, reply)
    assert verdict.outcome == "undecided"
    assert [step for step in verdict.steps if step.endswith(f" does not state an answer: {reason}")]


@pytest.mark.parametrize(
    ("reference", "reply"),
    [
        ("x=2或x=3", "答：x=2或x=3"),
        ("25人", "答：男生有25人。"),
        ("26人", "答：男生有25人。"),
        ("25人左右", "答：25人左右"),
    ],
)
def test_a_decided_answer_has_no_obstacle(reference: str, reply: str) -> None:
    verdict = harness.grade(reference, reply)
    assert verdict.outcome != "undecided"
    assert not any("does not state an answer" in step for step in verdict.steps)


CALCULATIONS = (
    ("24+21", "45", "四十五"), ("3×4", "12", "十二"), ("(30-6)÷2", "12", "十二"), ("3×4=12，12+5", "17", "十七"),
    ("6*6", "36", "三十六"), ("25×4÷10", "10", "十"),
)  # fmt: skip
"""Rows (calculation, its result in digits, in words)."""

CONCLUSIONS = (
    "所以一共有{}人。", "因此全班有{}人。", "一共有{}人。", "总共{}人。", "共有{}人。", "所以，参加的有{}人。",
    "故全班有{}人", "所以总人数是{}人。",
)  # fmt: skip
NO_CONCLUSIONS = (
    "小明说所以一共有{}人。", "所以不是一共有{}人。", "所以大约有{}人。", "所以一共有{}人吗？", "如果一共有{}人。",
    "所以一共有{}人多。", "所以至少有{}人。", "所以一共有{}人，这是错的。", "假设一共有{}人。", "所以小红猜有{}人。",
    "所以一共有{}万人。", "所以男生有{}人，女生有3人。", "所以比{}人多3人。", "所以还差{}人的一半。",
    "所以一共有{}个半。", "所以一共有{}/7。", "但一共有{}人。", "全班不一定有{}人。", "所以不能确定一共有{}人。",
)  # fmt: skip
"""Clauses behind a calculation that conclude its result, and that do not."""


@pytest.mark.parametrize(("calculation", "result", "words"), CALCULATIONS)
@pytest.mark.parametrize("unit", ["", "（人）"])
@pytest.mark.parametrize("lead", ["", "先列式。\n解："])
def test_a_conclusion_behind_a_calculation_states_its_result(
    calculation: str, result: str, words: str, unit: str, lead: str
) -> None:
    equation = f"{lead}{calculation}={result}{unit}，"
    other = str(int(result) + 1)
    for conclusion in CONCLUSIONS:
        for spelt in (result, words):
            assert outcome(f"{result}人", reply := equation + conclusion.format(spelt)) == "correct", reply
        for reference in (result, other):
            reply = equation + conclusion.format(other)
            assert outcome(f"{reference}人", reply) == "undecided", reply
    for clause in NO_CONCLUSIONS:
        for value in (result, other, words):
            reply = equation + clause.format(value)
            assert outcome(f"{value}人", reply) != "correct", reply
            assert outcome(f"{result}人", reply) != "correct", reply


def test_a_conclusion_in_another_unit_than_its_calculation_is_undecided() -> None:
    assert outcome("12元", "3×4=12（元），所以一共要付12元。") == "correct"
    assert outcome("12角", "3×4=12（元），所以一共要付12角。") == "undecided"
    assert outcome("12元", "3×4≠12，所以一共要付12元。") == "undecided"


IS, RIGHT = ("是", "是的"), ("对", "对的", "正确", "√")
IS_NOT, FALSE = ("否", "不是"), ("不对", "错", "错误", "×")
YES, NO = (*IS, *RIGHT[:-1]), (*IS_NOT, *FALSE[:-1])
OPPOSITE = {
    word: opposite[0]
    for group, opposite in ((IS, IS_NOT), (IS_NOT, IS), (RIGHT, FALSE), (FALSE, RIGHT))
    for word in group
}


@pytest.mark.parametrize(
    ("same", "others", "of_another_kind"),
    [
        (IS, IS_NOT, (*RIGHT, *FALSE)), (IS_NOT, IS, (*RIGHT, *FALSE)),
        (RIGHT, FALSE, (*IS, *IS_NOT)), (FALSE, RIGHT, (*IS, *IS_NOT)),
    ],
)  # fmt: skip
def test_chinese_words_for_yes_are_equal_and_so_are_those_for_no(
    same: tuple[str, ...], others: tuple[str, ...], of_another_kind: tuple[str, ...]
) -> None:
    references = [word for word in same if word not in "√×"]  # a sign is an answer, and no reference
    for reference, answer in product(references, of_another_kind):
        assert outcome(reference, rf"\boxed{{{answer}}}") == "undecided", (reference, answer)
    for reference, answer in product(references, same):
        assert outcome(reference, rf"\boxed{{{answer}}}") == "correct", (reference, answer)
        assert outcome(reference, rf"\boxed{{\text{{{answer}}}}}") == "correct", (reference, answer)
    for reference, answer in product(references, others):
        assert outcome(reference, rf"\boxed{{{answer}}}") == "wrong", (reference, answer)
    for other in ("不一定", "是非", "对错", "对角线", "yes and no", "是吗？"):
        assert outcome(same[0], rf"\boxed{{{other}}}") == "undecided", other


AFFIRMED = ("正方形是长方形。", "三角形的内角和是180度。", "18能被3整除")
DENIED = ("长方形不是正方形。", "三角形的内角和不是360度", "17不能被3整除。")
OPEN = (
    "但是正方形不是长方形。", "正方形可能是长方形。", "正方形是长方形吗？", "我们先看题目。", "有时成立。",
    "小明说正方形是长方形。",
    "我算错了，正方形是长方形。", "如果四个角都是直角。", "除非边长为0。", "你的问题很好。", "这要看情况，不一定。",
    "不完全不是。",
    "正方形是长方形，但反过来不对。", "大概正方形是长方形。",
)  # fmt: skip
"""Clauses behind 是的, behind 不是, and behind neither."""


@pytest.mark.parametrize("lead", ["", "答："])
def test_a_whole_reply_that_begins_with_yes_or_no_is_read_if_its_clause_agrees(lead: str) -> None:
    for words, agreeing, other in ((YES, AFFIRMED, DENIED), (NO, DENIED, AFFIRMED)):
        for word, clause in product(words, agreeing):
            # Behind 答： the 不 of a clause may deny the answer before it (`behind_chinese`).
            may_be_open = lead == "答：" and word in NO
            right, wrong = (outcome(reference, f"{lead}{word}，{clause}") for reference in (word, OPPOSITE[word]))
            assert (right, wrong) == ("correct", "wrong") or (may_be_open and right == wrong == "undecided"), (
                word,
                clause,
            )
        for word, clause in product(words, (*other, *OPEN)):
            assert outcome(word, f"{lead}{word}，{clause}") != "correct", (word, clause)


def test_a_sentence_in_a_box_is_read_as_without_a_box() -> None:
    for words, clauses in product((YES, NO), (AFFIRMED, DENIED, OPEN)):
        for word, clause in product(words, clauses):
            sentence = f"{word}，{clause}"
            for reference in (word, OPPOSITE[word]):
                boxed = {outcome(reference, rf"\boxed{{{box}}}") for box in (sentence, rf"\text{{{sentence}}}")}
                assert boxed == {outcome(reference, sentence)}, (reference, sentence)
    assert outcome("错", r"\boxed{这句话是错误的}") == "correct" != outcome("对", r"\boxed{这句话是错误的}")
    sentence = "是的，正方形是长方形"  # a reference that is a sentence keeps its own text
    assert outcome(sentence, rf"\boxed{{{sentence}}}") == "correct" != outcome(sentence, r"\boxed{是的}")


@pytest.mark.parametrize("reply", [
    "四个角都是直角。是的，正方形是长方形。", "所以是的，正方形是长方形。", "是的，正方形可能是长方形。",
])  # fmt: skip
def test_a_yes_elsewhere_in_a_reply_is_undecided_and_its_obstacle_is_named(reply: str) -> None:
    verdict = harness.grade("是", reply)
    assert verdict.outcome == "undecided"
    assert any("是的 is read in a box, or if the reply is this one sentence" in step for step in verdict.steps)


def test_an_obstacle_behind_a_calculation_is_that_of_its_conclusion() -> None:
    steps = harness.grade("45人", "24+21=45，所以一共有46人。").steps
    assert any("its calculation gives 45, and its conclusion is another: 所以一共有46人" in step for step in steps)
