"""Rows of quantities with names, such as 长8厘米，宽5厘米: the same names with the same quantities, however written.

For: harness.grading.compare.named_quantities, harness.grading.find.rows.
"""

from __future__ import annotations

from itertools import permutations, product

import pytest

from tests.budget import share_of
from tests.grading.test_grading_chinese_sentences import outcome

ROWS = (
    (("长", "8", "厘米"), ("宽", "5", "厘米")),
    (("商", "5", ""), ("余数", "2", "")),
    (("", "7", "袋"), ("还剩", "3", "个")),
    (("鸡", "6", "只"), ("兔", "4", "只")),
    (("甲", "30", "本"), ("乙", "20", "本"), ("丙", "10", "本")),
)
Row = tuple[tuple[str, str, str], ...]
"""Names, numbers and units."""

LINKS = ("", "是", "为", "：", " ")
LATEX = ("{}", "\\text{{{}}}", " {} ", "\\mathrm{{{}}}")


def written(row: Row, link: str = "", words: str = "{}", mark: str = "，") -> str:
    """Return a row as text, `words` around each run of words, `mark` between two quantities."""
    parts = (
        "".join((words.format(name + link) if name else "", number, words.format(unit) if unit else ""))
        for name, number, unit in row
    )
    return mark.join(parts)


@pytest.mark.parametrize("row", ROWS)
def test_the_same_names_with_the_same_quantities_are_right(row: Row) -> None:
    reference = written(row)
    for link, words in product(LINKS, LATEX):
        answer = written(row, link, words)
        assert outcome(reference, f"\\boxed{{{answer}}}") == "correct", answer
        assert outcome(answer, f"\\boxed{{{reference}}}") == "correct", answer
    for link, mark in product(LINKS, (" ", "  ")):
        assert outcome(reference, f"\\boxed{{{written(row, link, mark=mark)}}}") == "correct", (row, link, mark)
    name, number, unit = row[0]
    joined = f"\\text{{{name}}}{number}\\text{{{unit}，" + f"{row[1][0]}}}{row[1][1]}\\text{{{row[1][2]}}}"
    assert outcome(written(row[:2]), f"\\boxed{{{joined}}}") == "correct", joined


@pytest.mark.parametrize("row", ROWS)
def test_swapped_other_and_limited_quantities_are_never_right(row: Row) -> None:
    numbers = [number for _, number, _ in row]
    twins = [
        written(tuple((name, other, unit) for (name, _, unit), other in zip(row, order, strict=True)))
        for order in permutations(numbers)
        if list(order) != numbers
    ]
    text = written(row)
    twins += [written((*row[:-1], (row[-1][0], other, row[-1][2]))) for other in ("1", "1 2", "-2", "2.5", "2或3")]
    twins += [written((*row[:-1], (name, *row[-1][1:]))) for name in ("高", "还差", "不是", row[0][0] or "共")]
    twins += [twin.replace("，", " ") for twin in twins]
    twins += [written((*row, ("共", "10", "个"))), written(row[:1]), text + "左右", "不是" + text, text + "的一半"]
    twins += [written((*row[:-1], (*row[-1][:2], unit))) for unit in ("分米", "千克", "天")]
    accepted = [
        reply
        for twin, frame in product(twins, ("\\boxed{{{}}}", "答：{}。", "所以{}。"))
        if outcome(text, reply := frame.format(twin)) == "correct"
    ]
    assert accepted == []


COUNTED = (
    (("鸡", "6", "只"), ("兔", "4", "只")),
    (("大船", "3", "条"), ("小船", "5", "条")),
    (("男生", "24", "人"), ("女生", "18", "人")),
    (("苹果", "12", "个"), ("梨", "8", "个"), ("桃", "5", "个")),
)
STATED_IN = (
    "\\boxed{{{}}}",
    "答：{}。",
    "答案是{}",
    "{}",
    "所以{}。",
    "先列式，再计算。\n因此，{}。",
    "**{}**",
    "解：6×4=24\n{}。",
)
DIVISIONS = (
    "商是{}，余数是{}", "商为{}，余数为{}", "商{}余{}", "{}余{}", "{}……{}", "{} …… {}", "{}...{}",
    "\\boxed{{{}\\cdots\\cdots{}}}", "商：{}，余数：{}", "所以商是{}，余数是{}。", "答：商是{}，余数是{}。",
    "17÷3={}……{}", "17÷3的商是{}，余数是{}",
)  # fmt: skip


def spellings(row: Row) -> list[str]:
    """Return a row with its name before and behind each number, joined in three ways."""
    before = [[f"{name}{link}{number}{unit}" for name, number, unit in row] for link in ("", "有", "是", "：")]
    items = [*before, [f"{number}{unit}{name}" for name, number, unit in row]]
    return [mark.join(written) for written in items for mark in ("，", "、", "和")]


@pytest.mark.parametrize("row", COUNTED)
def test_a_row_is_read_in_any_order_and_another_pairing_is_wrong(row: Row) -> None:
    reference = written(row)
    orders = list(permutations(row))
    right = [text for order in orders for text in spellings(order)]
    replies = share_of(frame.format(text) for text in right for frame in STATED_IN)
    assert [reply for reply in replies if outcome(reference, reply) != "correct"] == []
    numbers = [number for _, number, _ in row]
    others = [order for order in permutations(numbers) if list(order) != numbers] + [("7", *numbers[1:])]
    paired = [tuple((name, n, unit) for (name, _, unit), n in zip(row, other, strict=True)) for other in others]
    replies = share_of(frame.format(text) for twin in paired for text in spellings(twin) for frame in STATED_IN)
    assert [reply for reply in replies if outcome(reference, reply) != "wrong"] == []


@pytest.mark.parametrize("row", COUNTED)
def test_a_row_that_is_limited_or_longer_or_taken_back_is_never_right(row: Row) -> None:
    reference = written(row)
    around = (
        "大概{}", "不是{}", "如果{}，那么呢？", "小明说{}", "原来{}", "{}左右", "{}，这是错的", "{}吗？", "假设{}。",
        "没有{}",        "至少{}", "{}以上", "{}和2只鸭", "{}，共10只", "{}或者相反", "题目中{}", "{}都不对", "可能{}",
    )  # fmt: skip
    twins = [form.format(text) for form in around for text in spellings(row)]
    replies = share_of(frame.format(twin) for twin in twins for frame in STATED_IN)
    replies += [f"{text}。这是错的。" for text in spellings(row)] + [f"如果是这样：{text}。" for text in spellings(row)]
    assert [reply for reply in replies if outcome(reference, reply) == "correct"] == []


@pytest.mark.parametrize("reference", ["商5余2", "5……2", "5余2", "商是5，余数是2"])
def test_a_quotient_and_its_remainder_are_read_in_every_form(reference: str) -> None:
    right = [form.format(5, 2) for form in DIVISIONS] + ["余数是2，商是5"]
    assert [reply for reply in right if outcome(reference, reply) != "correct"] == []
    pairs = ((2, 5), (5, 3), (4, 2), (5, 0), (52, 2))
    # A calculation that is wrong in itself states no result.
    wrong = [form.format(*pair) for form in DIVISIONS if "17" not in form for pair in pairs] + ["余数是5，商是2"]
    assert [reply for reply in wrong if outcome(reference, reply) != "wrong"] == []
    open_ones = [form.format(*pair) for form in DIVISIONS for pair in pairs] + [
        "16÷3=5……2",
        "52",
        "5.2",
        "商5",
        "5余2米",
        "5余-2",
    ]
    assert [reply for reply in open_ones if outcome(reference, reply) == "correct"] == []


BESIDE_NAMES = (
    (
        "7袋，还剩3个",
        "可以装7袋，还剩3个 装了7袋，剩3个 装7袋余3个",
        "装了3袋，剩7个 可以装7袋，还剩4个 还差7袋，剩3个",
    ),
    (
        "长8厘米，宽5厘米",
        "长方形的长是8厘米，宽是5厘米 长80毫米，宽50毫米 长8，宽5",
        "长是5厘米，宽是8厘米 长8米，宽5米 长8，宽6",
    ),
    ("甲12本，乙8本", "甲分得12本，乙分得8本 甲有12本书，乙有8本书", "甲有8本书，乙有12本书 甲有12本书，乙有9本书"),
    ("男生24人，女生18人", "男24人，女18人 24名男生，18名女生", "男18人，女24人 18位男生，24位女生 男24组，女18组"),
    ("大船3条，小船5条", "租大船3条，小船5条 租了3条大船和5条小船", "租大船5条，小船3条 没租大船3条，小船5条"),
)
"""Rows (reference, texts that equal it, texts that do not)."""


@pytest.mark.parametrize(("reference", "right", "twins"), BESIDE_NAMES)
def test_words_of_closed_lists_beside_the_names_add_nothing(reference: str, right: str, twins: str) -> None:
    frames = ("{}", "答：{}。", "\\boxed{{{}}}")
    assert [r for r in right.split() for f in frames if outcome(reference, f.format(r)) != "correct"] == []
    assert [t for t in twins.split() for f in frames if outcome(reference, f.format(t)) == "correct"] == []


LEADS = (
    "故答案为：{}。",
    "所以答案为：{}",
    "所以，答案是：{}。",
    "因此答案为{}。",
    "故正确答案是：{}",
    "所以最终答案是：{}。",
)


@pytest.mark.parametrize("reference", ["9……5", "长8厘米，宽5厘米"])
def test_a_label_behind_a_conclusion_announces_a_row(reference: str) -> None:
    texts = [reference, "9余5", "商9余5"] if "……" in reference else [reference]
    twins = [text.translate(str.maketrans("95", "59" if "……" in reference else "98")) for text in texts]
    for lead in LEADS:
        for text, twin in zip(texts, twins, strict=True):
            assert outcome(reference, lead.format(text)) == "correct", lead.format(text)
            assert outcome(reference, lead.format(twin)) == "wrong", lead.format(twin)
    for other in (
        "故答案不为：{}。",
        "故错误答案为：{}。",
        "小明的答案为：{}。",
        "如果算错，故答案为：{}。",
        "故答案为：{}。这是错的。",
    ):
        assert outcome(reference, other.format(texts[0])) != "correct", other
