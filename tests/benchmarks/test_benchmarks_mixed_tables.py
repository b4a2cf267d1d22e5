"""One table with questions of several kinds: rows with options beside rows without.

For: harness.benchmarks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks import questions
from harness.benchmarks.card import Card, from_mapping
from harness.core.errors import UsageError
from harness.core.records import Question
from harness.grading.selftest import boxed_sample
from harness.grading.verdict import grade

HEAD = "no,task,A,B,C,answer"
PAPER = f"""{HEAD}
1,How many litres are 2 m3?,,,,2000
5,Which is prime?,9,15,17,C
6,Which is even? (A) 3 (B) 4,,,,B
7,Is 7 prime?,,,,yes
8,Solve x^2=4,,,,2;-2
"""
CARD: dict[str, Any] = {
    "name": "paper",
    "title": "Paper",
    "columns": {"question": "task", "answer": "answer", "id": "no"},
    "choices": {"options": ["A", "B", "C"]},
    "kind": "auto",
    "prompt": "boxed_mixed",
}


def paper(folder: Path, table: str = PAPER, **changes: Any) -> Card:
    path = folder / "paper.csv"
    path.write_text(table, encoding="utf-8")
    return from_mapping(CARD | {"source": {"kind": "file", "path": str(path)}} | changes, "test")


def by_id(card: Card) -> dict[str, Question]:
    return {question.question_id: question for question in questions.build(card).questions}


@pytest.mark.parametrize(
    ("question_id", "right", "wrong"),
    [
        ("1", "2000", "200"),
        ("5", "C", "B"),
        ("6", "B", "A"),
        ("7", "yes", "no"),
        ("8", "-2;2", "2;3"),
    ],
)
def test_one_table_holds_questions_of_all_kinds(tmp_path: Path, question_id: str, right: str, wrong: str) -> None:
    question = by_id(paper(tmp_path))[question_id]
    assert grade(question, boxed_sample(question, right)).verdict == "correct"
    assert grade(question, boxed_sample(question, wrong)).verdict != "correct"


def test_only_a_row_with_options_shows_options(tmp_path: Path) -> None:
    rows = by_id(paper(tmp_path))
    assert [name for name, question in rows.items() if question.choices] == ["5"]
    assert "A) 9\nB) 15\nC) 17\n" in rows["5"].last_turn
    assert all("letter of the right option" in question.last_turn for question in rows.values())


def test_a_card_of_choices_still_needs_options_in_every_row(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="or use a card of `kind: auto`, whose table may hold both"):
        questions.build(paper(tmp_path, kind="choice"))
