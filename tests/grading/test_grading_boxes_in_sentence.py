r"""A sentence with a box for each part of the answer: right ones and their twins, made by the hundred.

For: harness.grading.find.boxes_in_sentence, harness.grading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import cycle

from tests.grading.outcomes import outcome

_SENTENCES = [
    ("7；1", 7, 1, "商是{}，余数是{}|所以商是{}，余数是{}。|{}余{}|因此57÷8=7……1。答：{}……{}"),
    ("7余1", 7, 1, "商是{}，余数是{}|答：{}余{}。|{}……{}"),
    ("9；20", 9, 20, "第一个空填{}，第二个空填{}|3:4 = {}:12 = 15:{}|第一空是{}，第二空是{}。"),
    ("9，20", 9, 20, "第一个空填{}，第二个空填{}|所以3:4={}:12=15:{}"),
    ("12；24", 12, 24, "长{}厘米，宽{}厘米|答：长是{}厘米，宽是{}厘米。|长方形的长为{}cm，宽为{}cm"),
    ("12，24", 12, 24, "长{}厘米，宽{}厘米"),
    ("3小时20分", 3, 20, "答：路上用了{}小时{}分。|{}时{}分"),
    ("12.5元", 12, 5, "{}元{}角|答：一共要{}元{}角。"),
    ("12；5", 12, 5, "{}元{}角"),
    ("12元5角", 12, 5, "{}元{}角|答：一共要{}元{}角。"),
    ("3:2", 3, 2, "{}：{}|甲乙的比是{}:{}。"),
    ("(3,2)", 3, 2, "横坐标为{}，纵坐标为{}"),
    ("鸡5只，兔3只", 5, 3, "答：鸡有{}只，兔有{}只。"),
]
_LIMITS = ("不是", "如果", "大约")


def _replies() -> Iterator[tuple[str, str, str]]:
    """Yield a reference, a reply and what is known of it: right, wrong, or open (its words limit a right value)."""
    styles = cycle(
        (before, box) for before in ("", "先算\\boxed{{99}}。\n") for box in (r"\boxed{{{}}}", r"$\boxed{{{}}}$")
    )
    for reference, first, second, forms in _SENTENCES:
        for form, (before, box) in zip(forms.split("|"), styles, strict=False):
            start, middle, end = form.split("{}")
            sentence = f"{before}{start}{box}{middle}{box}{end}"
            yield reference, sentence.format(first, second), "right"
            for values in ((second, first), (first, second + 1), (first + 1, second), (second, second)):
                yield reference, sentence.format(*values), "wrong"
            stated = sentence.format(first, second).rstrip("。")
            yield reference, f"{stated}，一共{box.format(first + second)}", "wrong"
            label, colon, name = start.rpartition("：")
            heads = [(f"{label}{colon}{word}{name}", middle) for word in _LIMITS]
            # Beside one value a box before such a word may be that of a step.
            gaps = [(start, f"{middle}{word}") for word in _LIMITS if reference != "12.5元"]
            for head, gap in (*heads, *gaps):
                yield reference, f"{before}{head}{box}{gap}{box}{end}".format(first, second), "open"


def test_a_box_for_each_part_of_the_answer_and_its_twins() -> None:
    outcomes = Counter((known, outcome(reference, reply)) for reference, reply, known in _replies())
    assert outcomes["right", "correct"] == sum(n for (known, _), n in outcomes.items() if known == "right") > 20
    assert outcomes["wrong", "correct"] == 0
    assert outcomes["wrong", "wrong"] > 50
    assert outcomes["open", "undecided"] == sum(n for (known, _), n in outcomes.items() if known == "open") > 100


def test_a_line_for_each_part_of_the_answer_and_its_twins() -> None:
    for end in ("", "。", "，", "$", "厘米\n"):
        for names in (("商是", "余数是"), ("第一空：", "第二空："), ("①", "② "), ("长：", "宽：")):
            for values, expected in (((7, 1), "correct"), ((6, 1), "wrong"), ((7, 2), "wrong"), ((1, 7), "undecided")):
                dollar = "$" if end == "$" else ""
                lines = [f"{name}{dollar}\\boxed{{{value}}}{end}" for name, value in zip(names, values, strict=True)]
                reply = "先算得\\boxed{57}\n" + "\n".join(lines)
                assert outcome("7；1", reply) == expected, reply
                assert outcome("7；1", reply.replace(names[0], f"不{names[0]}")) == "undecided"


def test_steps_over_sentences_and_references_of_one_part_keep_the_last_box() -> None:
    for reference, reply, expected in (
        ("12", "长\\boxed{3}厘米，面积\\boxed{12}平方厘米", "correct"),
        ("9；20", "第一步得\\boxed{36}。\n所以填\\boxed{9；20}", "correct"),
        ("2,3", r"We have \boxed{2} and \boxed{4}, so \boxed{2,3}.", "correct"),
        ("7；1", "先得\\boxed{6}。\n再得\\boxed{7}", "undecided"),
        ("12.5元", "第一种要\\boxed{6.25}元，一共要\\boxed{12.5}元", "correct"),
        ("12.5元", "\\boxed{12}元\\boxed{5}分", "wrong"),
        ("12.5元", "每支\\boxed{12}元\\boxed{5}角", "undecided"),
        ("12元5角", "每支\\boxed{12}元\\boxed{5}角", "undecided"),
    ):
        assert outcome(reference, reply) == expected, reply
