"""A file of questions in any of the main languages is asked as it stands.

For: harness.asking.prepare, harness.benchmarks.usual_columns.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.asking import prepare
from harness.asking.options.run import RunOptions
from harness.asking.watching import Watcher
from harness.core.errors import UsageError


def asked(folder: Path, row: dict[str, object], *more: dict[str, object], **options: object) -> list[tuple[str, str]]:
    """(id, user's message) of each question of a file with these rows."""
    path = folder / "own.jsonl"
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in (row, *more)))
    (question_set,) = prepare.questions_of(RunOptions.of(data=str(path), **options)).sets
    return [(question.question_id, question.messages[-1].content) for question in question_set.questions]


@pytest.mark.parametrize(
    ("row", "keys"),
    [
        ({"QUESTION": "1 + 1 = ?", "Correct Answer": "2"}, ()),
        ({" Problem ": "1 + 1 = ?", "final-answer": "2"}, ()),
        ({"Prompt": "1 + 1 = ?", "ExpectedAnswer": "2"}, ()),
        ({"My Text": "1 + 1 = ?", "x": "2"}, ("my_text", "X")),
        ({"问题": "1 + 1 = ?", "答案": "2"}, ("问题", "答案")),
        ({"Question": "1 + 2 = ?", "question": "1 + 1 = ?", "answer": "2"}, ()),  # spelt exactly as a name: it is first
    ],
)
def test_case_spaces_underscores_and_hyphens_of_a_column_do_not_matter(
    tmp_path: Path, row: dict[str, object], keys: tuple[str, ...]
) -> None:
    ((_, text),) = asked(tmp_path, row, **dict(zip(("question_key", "answer_key"), keys, strict=False)))
    assert text.startswith("1 + 1 = ?")


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        *(({"question": "1?", name: "2"}, f"'answer' .* for the answer; it has question, {name}")
          for name in ("answers", "correct", "answer 1")),
        ({"问题": "1?", "answer": "2"}, "'problem' or .* or 'messages' for the question; it has 问题, "),
    ],
)  # fmt: skip
def test_a_column_of_another_name_is_refused(tmp_path: Path, row: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"no column {sentence}"):
        asked(tmp_path, row)


def test_the_column_id_identifies_questions_and_must_be_distinct(tmp_path: Path) -> None:
    first, second = {"id": "a1", "problem": "1 + 1?", "answer": "2"}, {"id": 7, "problem": "1 + 2?", "answer": "3"}
    assert [name for name, _ in asked(tmp_path, first, second)] == ["a1", "7"]
    ((name, _),) = asked(tmp_path, {"problem": "1 + 1?", "answer": "2"})
    assert len(name) == 16, "without the column: a checksum"
    with pytest.raises(UsageError, match=r"the id 'a1' stands already at .*own\.jsonl:1; ids must be distinct"):
        asked(tmp_path, first, second | {"id": "a1"})


@pytest.mark.parametrize(
    ("sign", "name"), [("\t", "class.csv"), (";", "class.csv"), (",", "class.csv"), ("\t", "class.tsv")]
)
def test_a_table_is_read_by_the_sign_between_its_cells(tmp_path: Path, sign: str, name: str) -> None:
    half = "1,5 + 1 = ?" if sign != "," else "1.5 + 1 = ?"
    rows = [["question", "answer"], ["1 + 1 = ?", "2"], [half, "2.5"], ["", ""]]
    (tmp_path / name).write_text("".join(sign.join(row) + "\n" for row in rows), "utf-8")
    questions = list(prepare.questions_of(RunOptions.of(data=str(tmp_path / name))).sets[0].questions)
    assert [question.references for question in questions] == [("2",), ("2.5",)]


@pytest.mark.parametrize(
    ("rows", "warning"),
    [
        (["面积？,4米,", "边长？,5米,", "面积？,5米,"], "class.csv:4 has the question of"),
        (["面积？,4米,", "边长？,4米,", "面积？,4米,"], "1 of 3 rows is equal to an earlier one"),
        (["面积？,30,31"], ""),
    ],
)
def test_answers_that_contradict_are_warned_of(tmp_path: Path, rows: list[str], warning: str) -> None:
    """A question with two answers; several rows of one kind warn once."""
    (tmp_path / "class.csv").write_text("问题,答案,也对\n" + "".join(f"{row}\n" for row in rows), "utf-8")
    (tmp_path / "class.yaml").write_text(
        "title: class\nsource: {kind: file, path: class.csv}\nkind: auto\nprompt: boxed_zh\n"
        "columns: {question: 问题, answer: 答案, more_answers: 也对}\n",
        "utf-8",
    )
    (made,) = prepare.questions_of(RunOptions.of(benchmarks=(str(tmp_path / "class.yaml"),))).sets
    notes = made.notes
    assert len(notes) == bool(warning)
    assert warning in "".join(notes)


def test_two_columns_with_usual_names_are_told(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text("question,gold,answer\n1 + 1 = ?,2,3\n2 + 2 = ?,4,4\n2 + 2 = ?,4,4\n", "utf-8")
    told: list[str] = []

    class Ear(Watcher):
        def warn(self, sentence: str) -> None:
            told.append(str(sentence))

    prepare.questions_of(RunOptions.of(data=str(tmp_path / "class.csv")), Ear())
    assert (
        "the answer is taken from the column answer, although gold may hold it too; name another column by answer_key"
        in told[1]
    )
    assert told[0].startswith("1 of 3 rows is equal to an earlier one")
    told.clear()
    prepare.questions_of(RunOptions.of(data=str(tmp_path / "class.csv"), answer_key="gold"), Ear())
    assert len(told) == 1
