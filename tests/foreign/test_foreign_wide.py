"""A table with a row for each pupil and a column for each question gives the scores of the same replies row by row.

For: harness.foreign.wide.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

import harness
from harness.benchmarks import prompts
from harness.benchmarks.sources.tables import Row
from harness.core.errors import UsageError
from harness.core.records import CHECKSUM_ID_CHARS, Question
from harness.foreign import formats, outputs, wide
from tests.system.command import harness as command

HEADINGS = ("{}", "第{}题", "题{}", "题目{}", "Q{}", "q{}")


def sheet(ids: list[str], *, own: bool = True) -> tuple[Question, ...]:
    """Questions with these ids. own: the ids stand in the data; else they are checksums of rows."""
    row_digests = [id_.ljust(64, "0") for id_ in ids]
    return tuple(
        Question(
            benchmark="sheet", question_id=id_ if own else row_digest[:CHECKSUM_ID_CHARS], references=("1",),
            kind="math", row_digest="" if own else row_digest, prompt_digest="",
        )
        for id_, row_digest in zip(ids, row_digests, strict=True)
    )  # fmt: skip


def write(path: Path, rows: list[list[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def both_forms(random: Random) -> tuple[tuple[Question, ...], list[list[str]], list[list[str]]]:
    """(questions, a class in one row a pupil, the same class in one row a reply)."""
    n = random.randint(1, 6)
    own = random.random() < 0.6
    ids = [f"{random.choice(('', 'q', '第', 'A-'))}{number}" for number in random.sample(range(1, 99), n)]
    questions = sheet(ids, own=own)
    names = ids if own else [str(number) for number in range(1, n + 1)]
    if all(map(str.isdecimal, names)):
        heading = random.choice(HEADINGS)
        names = [heading.format(name) for name in names]
    columns = [*zip(names, (question.question_id for question in questions), strict=True)]
    random.shuffle(columns)
    columns = columns[: random.randint(1, n) if own else n]
    before, behind = (
        random.choice((["姓名"], ["学号", "姓名"])),
        random.choice((["总分"], ["第1题得分", "第2题得分"], [])),
    )
    wide, long = [[*before, *(name for name, _ in columns), *behind]], [["姓名", "题号", "学生答案"]]
    for pupil in range(random.randint(1, 5)):
        replies = [random.choice(("1", "2", "", " \u3000", "一", "so 1")) for _ in columns]
        wide.append([*(f"{label}{pupil}" for label in before), *replies, *(str(pupil) for _ in behind)])
        long += [[str(pupil), id_, reply] for (_, id_), reply in zip(columns, replies, strict=True)]
    return questions, wide, long


def test_a_column_for_each_question_reads_as_a_row_for_each_reply(tmp_path: Path) -> None:
    random = Random(1)
    for _ in range(100):
        questions, wide, long = both_forms(random)
        pairs = []
        for form, rows in (("wide", wide), ("long", long)):
            keys: dict[str, Any] = {"id_key": "题号"} if form == "long" else {}
            seen = outputs.read(write(tmp_path / form / "class.csv", rows), questions=questions, **keys)
            assert (seen.only_ids, seen.are_cells) == (True, form == "wide")
            pupils = {pupil for pupil, _, reply in long[1:] if not reply.strip()}
            pupils -= {pupil for pupil, _, reply in long[1:] if reply.strip()}
            absent = [f"class.csv:{int(pupil) + 2} ({wide[0][0]}{pupil})" for pupil in sorted(pupils)]
            assert [name.rpartition("/")[2] for name in seen.empty_rows] == (absent if form == "wide" else [])
            pairs.append([(s.question_id, s.sample_index, s.text, q.references) for q, s in seen])
        assert pairs[0] == pairs[1], wide


def refusal(columns: list[str], questions: tuple[Question, ...]) -> str:
    with pytest.raises(UsageError) as error:
        next(formats.by_columns([Row("t.csv:2", dict.fromkeys(columns, "x"))], *[None] * 4, questions=questions))
    return str(error.value)


def test_headings_in_two_forms_or_with_a_number_that_is_no_id_are_refused() -> None:
    random = Random(2)
    for _ in range(200):
        questions = sheet([str(i) for i in range(1, random.randint(3, 8))], own=random.random() < 0.5)
        heading, another = random.sample(HEADINGS, 2)
        columns = [heading.format(i) for i in range(1, len(questions) + 1)]
        changed = random.choice((another.format(2), heading.format(99), heading.format("02"), f" {columns[1]}"))
        message = refusal(["姓名", columns[0], changed, *columns[2:]], questions)
        assert "which is named as none of the" in message, (columns, changed, message)
    questions = sheet(["1", "2", "3"])
    for unread in ("第{}题得分", "No.{}", "第 {} 题"):
        assert "if they hold replies, name these columns by the ids of the questions, such as '1'" in refusal(
            ["姓名", *map(unread.format, range(1, 4))], questions
        )
    assert "Paste Special > Transpose" in refusal(["姓名", "张伟", "李娜"], sheet(["x"]))
    assert "name the table of these questions with benchmark" in refusal(["姓名", "第1题", "第2题"], ())
    assert refusal([f"c{'x' * i}" for i in range(50)], questions).count(", …: name the column") == 1


def test_both_forms_give_the_same_scores_of_a_class_and_of_each_pupil(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [["编号", "问题", "答案"], ["1", "1 + 1?", "2"], ["2", "1 + 2?", "3"], ["3", "1 + 3?", "4"]]
    replies = {"张伟": ["2", "3", "5"], "李娜": ["2", "", "9"]}
    for form in ("wide", "long"):
        wide = [["姓名", "1", "2", "3"], *([name, *texts] for name, texts in replies.items())]
        long = [
            ["姓名", "题号", "学生答案"],
            *([n, str(i), t] for n, ts in replies.items() for i, t in enumerate(ts, 1)),
        ]
        write(tmp_path / form / "练习.csv", questions)
        write(tmp_path / form / "class.csv", wide if form == "wide" else long)
    stored = {}
    for form in ("wide", "long"):
        monkeypatch.chdir(tmp_path / form)
        keys = {"id_key": "题号"} if form == "long" else {}
        harness.score("class.csv", benchmark="./练习.csv", workers=1, **keys)
        harness.score("class.csv", benchmark="./练习.csv", workers=1, as_run="runs", by="姓名", **keys)
        stored[form] = [path.read_bytes() for path in sorted(Path().rglob("scores.json"))]
    assert stored["wide"] == stored["long"]
    # The page of a class: its name, the hardest question first, and no instruction that no pupil saw.
    page = harness.report("class.csv").html()
    assert "<h1>class.csv</h1>" in page
    assert re.findall('class="prompt">([^<]*)', page) == ["1 + 3?", "1 + 2?", "1 + 1?"]
    assert len(stored["wide"]) == 3
    for words in (("show", "runs/张伟"), ("audit", "runs/张伟", "--out", "todo.csv")):
        printed = command(Path.cwd(), *words, *(["--wrong"] if words[0] == "show" else [])).out
        seen = printed if words[0] == "show" else Path("todo.csv").read_text(encoding="utf-8")
        assert "1 + 3?" in seen
        assert "step by step" not in seen
    for name in ("boxed", "boxed_zh", "boxed_mixed", "boxed_mixed_zh", "boxed_letter", "boxed_letter_zh"):
        sent, _ = prompts.render(prompts.PROMPTS[name], "1 + 1?", "A) 2", "chat")
        question = msgspec.structs.replace(sheet(["1"])[0], messages=sent)
        assert prompts.bare_text(question) in ("1 + 1?", "1 + 1?\n\nA) 2"), name


def test_a_column_that_may_be_a_question_is_refused_and_named() -> None:
    own, bare = sheet(["1", "2", "q3"]), sheet(["a", "b", "c"], own=False)
    cases: list[tuple[tuple[Question, ...], list[str], str | None, str]] = [
        (
            own,
            ["姓名", "1", "2", "q3", "4"],
            None,
            r"the column '4', which is named as none of the 3 questions of sheet \(1 to q3\)",
        ),
        (own, ["1", "Ｑ 4"], None, "the column 'Ｑ 4', which is named as none"),
        (own, ["姓名", "01", "2"], None, "the column '01', which is named as none"),
        (own, ["1", "2", "q3"], "1", "the column '1' for one of the 3 questions of sheet, so it is no label"),
        (bare, ["姓名", "1", "2"], None, "columns for 2 of the 3 questions of sheet, and none named 3"),
        (bare, ["姓名", "1", "2", "3", "51"], None, r"the column '51', .* \(1 to 3\): correct its name"),
        (bare, ["姓名", "0", "1", "2", "3"], None, "the column '0', which"),
        (
            (),
            ["姓名", "1", "2"],
            None,
            r"questions \(1, 2 …\): name the table of these questions with benchmark",
        ),
        (sheet(["a", "b"]), ["姓名", "1", "2"], None, "name these columns by the ids of the questions, such as 'a'"),
    ]
    for questions, columns, by, message in cases:
        row = Row("t.csv:2", dict.fromkeys(columns, "1"))
        with pytest.raises(UsageError, match=message):
            next(formats.by_columns([row], None, None, None, None, questions=questions, by=by))
    row = Row("t.csv:2", {"题号": "1", "张伟": "1", "李娜": "2"})
    with pytest.raises(UsageError, match=r"If 张伟, 李娜 … are pupils, turn the table: .* Paste Special > Transpose"):
        next(formats.by_columns([row], None, None, None, None, questions=own))
    with pytest.raises(UsageError, match="leave out the names of other columns"):
        next(formats.by_columns([Row("t.csv:2", {"1": "1", "2": "2"})], "答案", None, None, None, questions=own))


def test_a_warning_names_the_rows_without_a_reply() -> None:
    assert wide.words_on_empty_rows([]) == ""
    assert wide.words_on_empty_rows(["t.csv:4 (王芳)"]).startswith("1 row without any reply: t.csv:4 (王芳). All")
    assert "g and 2 more. All" in wide.words_on_empty_rows([*"abcdeg"[:4], "g", "h", "i"])


def test_chinese_excel_saves_a_wide_table_in_its_own_encoding(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_bytes("姓名,1\n张伟,一m?\n李娜,3m?\n".encode("gb18030"))
    seen = outputs.read(tmp_path / "class.csv", questions=sheet(["1"]))
    assert [sample.text for _, sample in seen] == ["一m?", "3m?"]
    write(tmp_path / "sheet.csv", [["id", "question", "answer"], ["1", "1 + 2?", "3"]])
    (tmp_path / "class.csv").write_bytes("姓名,1\n张伟,一m?\n李娜,3m?\n孙悦,\n".encode("gb18030"))
    errors = command(tmp_path, "score", "class.csv", "--benchmark", "./sheet.csv").err
    assert "1 row without any reply: class.csv:4 (孙悦)" in " ".join(errors.split())
    assert "in 2 of 3 replies a ? may stand where a character such as ² or ✓ was lost" in " ".join(errors.split())
