"""Rows of quantities with names, such as 长8厘米，宽5厘米: the same names with the same quantities, however written.

For: harness.grading.compare.named_quantities.
"""

from __future__ import annotations

from itertools import permutations, product

import pytest

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


def written(row: Row, link: str = "", words: str = "{}") -> str:
    """Return a row as text, `words` around each run of words."""
    parts = (
        "".join((words.format(name + link) if name else "", number, words.format(unit) if unit else ""))
        for name, number, unit in row
    )
    return "，".join(parts)


@pytest.mark.parametrize("row", ROWS)
def test_the_same_names_with_the_same_quantities_are_right(row: Row) -> None:
    reference = written(row)
    for link, words in product(LINKS, LATEX):
        answer = written(row, link, words)
        assert outcome(reference, f"\\boxed{{{answer}}}") == "correct", answer
        assert outcome(answer, f"\\boxed{{{reference}}}") == "correct", answer
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
    twins += [written((*row, ("共", "10", "个"))), written(row[:1]), text + "左右", "不是" + text, text + "的一半"]
    twins += [written((*row[:-1], (*row[-1][:2], unit))) for unit in ("分米", "千克", "天")]
    accepted = [
        reply
        for twin, frame in product(twins, ("\\boxed{{{}}}", "答：{}。", "所以{}。"))
        if outcome(text, reply := frame.format(twin)) == "correct"
    ]
    assert accepted == []
