"""A question in which a character was lost is named before it is asked; a question mark is no finding.

For: harness.benchmarks.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from harness.benchmarks import questions
from harness.benchmarks.card import from_file
from harness.benchmarks.lost_characters import MAX_NAMED, lost_character, words_on_replies
from tests.system.command import harness

FORMULAS = (
    "x²-x-6=0", "x² - 4x = 0", "2a²-8ab+8b²=0", "(a+b)²-(a-b)²+1", "(x²-9)/(x-3)", "若a>b，则a²>b²-1", "y=(x-1)²-4",
    "3x²y-2", "10²×3", "sin²x+cos²x", "ab²-b", "面积是30m²，长5m", "边长a²、b²的和", "25m²的教室",
    "x² = 9", "x₁=3，x₂=-2",
    "5²+3²=34", "[a+1]²=4", "x²+y²=25", "n³-n", "2x²≥8", "10⁻⁵=1/100000",
)  # fmt: skip
LOST = str.maketrans(dict.fromkeys("²³₁₂", "?") | {"⁻": "?", "⁵": "?"})

QUESTION_MARKS = (
    "What is 2+3?", "What is x? Write a number.", "Which is larger, 5 or x?\nExplain.", "(Is it 5?)", "“5?”", "3+?=7",
    "?+3=7", "2:?=4:6", "?×4=12", "等于5?请选出", "下面哪个等于5?A. 4 B. 5", "Is it x?a) 4 b) 5", "Is it 5?\n- 5\n- 6",
    "Is it x?<br>Yes", "What is 5?<p>a</p>", "Why?-Because", "colou?r = 5", "*What is 5?* 5 points", "**Is it 5?**",
    "See http://a.example/page?b=1", "Is it 5? - a good idea", "这个数是5吗?", "求x?解：x=5", "多少m?", "1,2,4,?,16",
    "What?! 5", "5 ? 3 = 8", "a ? b : c", "Really??", "$x = ?$", "Which of 3 and 5?（5分）", "n=5?",
)  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize(("before", "behind"), [("", ""), ("解方程：", "。"), ("Solve ", ". What is it?")])
def test_a_lost_character_is_found(before: str, formula: str, behind: str) -> None:
    damaged = formula.translate(LOST)
    assert lost_character(before + damaged + behind)
    assert not lost_character(before + formula + behind)


def test_replies_of_which_excel_lost_a_character_are_counted() -> None:
    lost = ["30m?", "28.26cm?", "3.84×10?", "5?=25", "(x-3)?", "?", " ?? ", *(f.translate(LOST) for f in FORMULAS)]
    whole = ["30m²", "", "不会吧?", "3+?=7", "what?", "对", *FORMULAS]
    for text in lost:
        assert words_on_replies([("a.csv:2", "1"), ("a.csv:3", text)]).startswith("in 1 of 2 replies a ? may"), text
    assert words_on_replies(("a.csv:2", text) for text in whole) == ""
    sentence = words_on_replies(("a.csv:9", text) for text in (*whole, *lost))
    assert f"in {len(lost)} of {len(lost) + len(whole)} replies" in sentence
    assert "the first at a.csv:9, “30m?”: they are graded so" in sentence


@pytest.mark.parametrize("text", QUESTION_MARKS)
def test_a_question_mark_is_no_finding(text: str) -> None:
    assert not lost_character(text)


@pytest.mark.parametrize(
    ("text", "end"),
    [*itertools.product(("2+3", "x", "的值是(a+b)", "3 cm"), ("?", "? ", "?\n", "?)", "?”", "？", "? Yes."))],
)
def test_the_end_of_a_sentence_is_no_finding(text: str, end: str) -> None:
    assert not lost_character(text + end)


def test_the_sign_of_unread_bytes_is_found_and_shown_with_its_surroundings() -> None:
    assert lost_character("A long question: what is 30 m\ufffd in cm, and in mm?") == (
        "n: what is 30 m\ufffd in cm, and in"
    )


def test_the_questions_are_named_where_the_table_is_read(tmp_path: Path) -> None:
    table = tmp_path / "paper.csv"
    table.write_text("题号,题目,答案\n1,解方程：x?-x-6=0。,3\n2,2+3=?,5\n3,化简：(a+b)?-a?。,b\n", encoding="utf-8")
    (note,) = questions.build(from_file(str(table))).notes
    assert note == (
        f"in 2 of 3 questions (1, 3) a ? stands where a character such as ² was lost, the first at {table}:2, "
        "“解方程：x?-x-6=0。”: the model is asked so. Write the character anew, and save the file in UTF-8"
    )
    assert "in 2 of 3 questions (1, 3) a ?" in harness(tmp_path, "doctor", "--benchmark", str(table)).out


def test_options_are_read_too_and_many_questions_are_counted(tmp_path: Path) -> None:
    rows = [{"question": f"Which? {n}", "options": ["x?-1", "x"], "answer": "A"} for n in range(MAX_NAMED + 5)]
    path = tmp_path / "quiz.jsonl"
    path.write_text("".join(json.dumps({"id": n, **row}) + "\n" for n, row in enumerate(rows)), encoding="utf-8")
    (note,) = questions.build(from_file(str(path), choices_key=("options",))).notes
    assert note.startswith("in 25 of 25 questions (0, 1, 2,")
    assert "18, 19, …) a ? stands" in note
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (note,) = questions.build(from_file(str(path), choices_key=("options",))).notes
    assert note.startswith("in 25 of 25 questions a ? stands")


def test_answers_that_a_spreadsheet_may_have_made_of_fractions_are_named(tmp_path: Path) -> None:
    table = tmp_path / "paper.csv"

    def notes(*answers: str) -> tuple[str, ...]:
        rows = (f"{n},第{n}题？,{answer}" for n, answer in enumerate(answers, 1))
        table.write_text("\n".join(("题号,题目,答案", *rows)), encoding="utf-8")
        return questions.build(from_file(str(table))).notes

    (note,) = notes("1月4日", "7", "5:03", "16:15:00", "4-Jan", "12月31日")
    assert note == (
        f"the answer of 5 of 6 questions (1, 3, 4, 5, 6) is a day or a time, the first at {table}:2, “1月4日”, and "
        "others have numbers: Excel makes 1月4日 of 1/4, and 5:03 of 5:3. If no day or time is meant, set the column's "
        "format to text, and write the answer anew"
    )
    assert note in harness(tmp_path, "doctor", "--benchmark", str(table)).out.replace("\n", " ")
    assert notes("10月1日", "6月1日") == ()
    assert notes("7", "5:3", "1/4", "13月4日", "下午4:15", "16:15", "8:00", "1月4日前", "3-5", "4-June", "5:3:2") == ()
