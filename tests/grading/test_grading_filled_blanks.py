r"""Names, numbers and units before the values of several blanks: right replies and their twins, made by the hundred.

For: harness.grading.find.filled_blanks, harness.grading.find.numbered_parts, harness.grading.compare.blanks.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from msgspec.structs import replace

from harness.core.records import GradeRules, Message, Question
from harness.grading import verdict as deciding
from harness.grading.processes.pool import question_on, sample_of

_QUESTIONS = [
    ("长方形的周长是120米。宽是（　）米，长是（　）米。", ("宽", "长"), "是", "米", ("15", "45")),
    ("全班42人。男生有（　）人，女生有____人。", ("男生", "女生"), "有", "人", ("24", "18")),
    ("商是7，和是64……被除数是（　），除数是( )。", ("被除数", "除数"), "是", "", ("56", "8")),
    ("(1)甲车速度____km/h，(2)乙车速度____km/h", ("甲车速度", "乙车速度"), "为", "km/h", ("60", "90")),
    ("徒弟做（　）个，师傅做（　）个。", ("徒弟", "师傅"), "做了", "个", ("90", "270")),
    ("彩带剪去3米，剩下的是全长的（　），剪去的是全长的（　）。", ("剩下", "剪去"), "的是全长的", "", ("1/4", "3/4")),
    ("每段是全长的（　），每段长（　）米。", ("每段是全长的", "每段长"), "", "", ("1/5", "3/5")),
]  # fmt: skip
_FORMS = (
    "{0}{link}{1}{unit}，{2}{link}{3}{unit}",
    "先算一步。\n答：{0}{link}{1}{unit}，{2}{link}{3}{unit}。",
    "{0}：\\boxed{{{1}}}{unit}；{2}：\\boxed{{{3}}}{unit}",
    "所以{0}{link}$\\boxed{{{1}}}$ {unit}，{2}{link}$\\boxed{{{3}}}$ {unit}。",
    "- {0}：\\boxed{{{1}}}{unit}\n- {2}：\\boxed{{{3}}}{unit}",
    "\\boxed{{{0}={1}，{2}={3}}}",
    "{0}和{2}分别是\\boxed{{{1}}}、\\boxed{{{3}}}",
    "答：{0}{link}{1}{unit}，{2}{link}{3}{unit}。\n检验：略。",
)


@cache
def _question(reference: str, words: str, ordered: bool | None) -> Question:
    question = question_on(reference, rules=GradeRules(ordered=ordered))
    return replace(question, messages=(Message(role="user", content=words),))


@cache
def _decided(reference: str, answer: str, ordered: bool | None) -> deciding.AnswerVerdict:
    return deciding.decide(_question(reference, "", ordered), answer)


def _outcome(reference: str, reply: str, words: str = "", ordered: bool | None = True) -> str:
    extraction = deciding.search(_question(reference, words, ordered), sample_of(reply)).extraction
    if extraction is None:
        return "no_answer"
    decision, *beside = (_decided(reference, answer, ordered) for answer in (extraction.answer, *extraction.beside))
    return deciding.as_stated(extraction, decision, beside).outcome


def test_names_before_values_say_which_blank_each_value_fills() -> None:
    outcomes: Counter[tuple[str, str]] = Counter()
    for (words, names, link, unit, values), form in ((row, form) for row in _QUESTIONS for form in _FORMS):
        reference = "；".join(values)
        for (a, b), (x, y) in (((0, 1), values), ((1, 0), values[::-1])):
            rows = [("right", (x, y)), ("wrong", (y, x)), ("wrong", (x, "77"))]
            for known, (first, second) in rows:
                reply = form.format(names[a], first, names[b], second, link=link, unit=unit)
                for ordered in (True, None):
                    verdict = _outcome(reference, reply, words, ordered)
                    outcomes[known, verdict] += 1
                    assert (known == "right") == (verdict == "correct"), (reference, reply, ordered)
    assert outcomes["wrong", "undecided"] < 120 < outcomes["right", "correct"] < outcomes["wrong", "wrong"]


def test_names_that_leave_the_blanks_open_are_not_correct() -> None:
    for words, names, link, unit, (x, y) in _QUESTIONS[:5]:
        reference, (first, second) = f"{x}；{y}", names
        for reply in (
            f"{second}人数\\boxed{{{x}}}{unit}，{first}人数\\boxed{{{y}}}{unit}",
            f"{second}{link}\\boxed{{{x}}}{unit}，其余\\boxed{{{y}}}{unit}",
            f"其余\\boxed{{{x}}}{unit}，{first}{link}\\boxed{{{y}}}{unit}",
            f"不是{first}{link}{x}{unit}，不是{second}{link}{y}{unit}",
            f"有人说，{first}{link}{x}{unit}，{second}{link}{y}{unit}",
            f"如果{first}{link}{x}{unit}，{second}{link}{y}{unit}",
            f"{first}{link}{x}{unit}，{second}{link}{y}{unit}，对吗？",
            f"{first}{link}{x}{unit}，{second}{link}{y}{unit}左右",
            f"{second}和{first}分别是\\boxed{{{x}}}、\\boxed{{{y}}}",
            f"{second}、{first}分别是\\boxed{{{x}{unit}，{y}{unit}}}",
        ):
            assert _outcome(reference, reply, words) != "correct", reply


def test_units_of_a_list_are_those_of_the_blanks() -> None:
    metres, time = "宽是（　）米，长是（　）米。", "150分=（　）时（　）分"
    for reference, reply, words, expected in (
        ("15；45", "15米；45米", metres, "correct"),
        ("15；45", "15米；45厘米", metres, "undecided"),
        ("15；45", "15米；45厘米", "", "undecided"),
        ("15；45", "15米；46厘米", "", "wrong"),
        ("15；45", "宽15米，长45厘米", metres, "undecided"),
        ("15；45", "15千克；45米", "", "correct"),
        ("2；30", "2时，30分", time, "correct"),
        ("2；30", "30分，2时", time, "undecided"),
        ("2；30", "2时30分", "", "correct"),
    ):
        assert _outcome(reference, reply, words) == expected, (reply, words)


def test_a_whole_row_of_numbers_fills_its_blanks() -> None:
    words = "在（　）里填数：2，4，（　），（　），（　），12"
    rows = {"2，4，6，8，10，12": "correct", "2，4，8，6，10，12": "wrong", "2，4，6，8，11，12": "wrong"}
    for row, expected in {
        **rows,
        "2，5，6，8，10，12": "wrong",
        "4，6，8，10，12": "wrong",
        "6，8，10": "correct",
    }.items():
        assert _outcome("6；8；10", row, words) == _outcome("6；8；10", f"\\boxed{{{row}}}", words) == expected, row


_PARTS = [("8", "-3"), (r"\frac{1}{5}", "0.6"), ("5", "x=3"), ("y=2x+1", "5")]
_NUMBERED = (
    "（1）{}（2）{}", "(1){} (2){}", "(1) {}\n(2) {}", "1. {}\n2. {}", "1、{}；2、{}", "①{}②{}",
    "\\boxed{{(1){}\\quad(2){}}}",
    "(1)\\boxed{{{}}}\n(2)\\boxed{{{}}}", "**（1）** 原式=\\boxed{{{}}}\n\n**（2）** 解得 $\\boxed{{{}}}$。",
    "先算。\n综上：(1) {}；(2) {}", "{}；{}", "\\boxed{{{}；{}}}", "(1)${}$\n\n(2)${}$",
    "解：(1)\\boxed{{{}}}\n(2)\\boxed{{{}}}",
)  # fmt: skip


def test_numbers_before_values_say_which_part_each_value_answers() -> None:
    for (first, second), form in ((values, form) for values in _PARTS for form in _NUMBERED):
        for reference in (f"(1){first}；(2){second}", f"{first}；{second}"):
            assert _outcome(reference, form.format(first, second)) == "correct", (reference, form)
            for values in ((second, first), (first, "77"), ("77", second)):
                assert _outcome(reference, form.format(*values)) in ("undecided", "wrong"), (reference, form, values)
            swapped = form.replace("1", "0").replace("2", "1").replace("0", "2").replace("①", "0").replace("②", "①")
            if swapped != form and "\\boxed{{{" not in form:
                reply = swapped.replace("0", "②").format(second, first)
                assert _outcome(reference, reply) in ("correct", "undecided"), (reference, reply)


def test_numbered_steps_and_values_with_words_are_no_parts() -> None:
    for reply in (
        "(1)不是\\boxed{8}\n(2)\\boxed{-3}", "1. 8\n2. -3\n\n7", "1. 8\n2. -3\n所以答案是5", "(1)8\n(2)-3\n(3)4",
        "(1)8或9\n(2)-3", "(1)约8\n(2)-3", "(2)8\n(3)-3", "(1)8 9\n(2)-3",
    ):  # fmt: skip
        assert _outcome("8；-3", reply) != "correct", reply
    assert _outcome("1.5；2", "1. 1.5米\n2. 2米") == "correct"
