"""A user's file that holds a card's questions stands beside what is published of them; any other file does not.

For: harness.verbs.known_questions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from harness.benchmarks import card, questions
from harness.core.records import Question
from harness.runs import questions as question_file
from harness.verbs.known_questions import known_as
from tests.reports.run_folders import write_run
from tests.system.command import harness

ROWS = (("What is 1 + 1?", "2"), ("Is 7 prime?", "yes"), ("What is 5 · 5?", "25"))


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cards"
    folder.mkdir()
    monkeypatch.setenv("HARNESS_DATASETS", str(folder))
    return folder


def put_card(folder: Path, rows: Sequence[tuple[str, str]], **more: object) -> None:
    """The card `sums` of these rows."""
    (folder / "sums.jsonl").write_text("".join(json.dumps({"problem": q, "answer": a}) + "\n" for q, a in rows))
    fields = {
        "name": "sums",
        "title": "Sums",
        "source": {"kind": "file", "path": "sums.jsonl"},
        "columns": {"question": "problem", "answer": "answer"},
        "prompt": "boxed",
        "questions": len(rows),
        **more,
    }
    (folder / "sums.yaml").write_text(yaml.safe_dump(fields))


def own(folder: Path, rows: Sequence[tuple[str, str]]) -> Sequence[Question]:
    """The questions of a user's file with these rows, under other names of columns."""
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps({"Frage": q, "Antwort": a}) + "\n" for q, a in rows))
    return questions.build(card.from_file(str(path), question_key="Frage", answer_key="Antwort")).questions


def test_other_columns_order_spaces_zeros_and_an_instruction_are_the_same_set(tmp_path: Path, cards: Path) -> None:
    put_card(cards, ROWS)
    again = [("What is 5 ·  5?\n", "025"), *ROWS[:2]]
    assert known_as("mine", own(tmp_path, again)) == "sums"
    asked = [(f"{q}\nPlease reason step by step, and put your final answer within \\boxed{{}}.", a) for q, a in ROWS]
    assert known_as("mine", own(tmp_path, asked)) == "sums"


@pytest.mark.parametrize(
    "rows",
    [
        ROWS[:2],
        (*ROWS, ("What is 2 + 2?", "4")),
        (*ROWS[:2], ("What is 5 · 5?", "26")),
        (*ROWS[:2], ("What is 5 · 6?", "25")),
        (*ROWS[:2], ROWS[0]),
    ],
    ids=["one less", "one more", "another reference", "another text", "one twice"],
)
def test_anything_else_is_another_set(rows: Sequence[tuple[str, str]], tmp_path: Path, cards: Path) -> None:
    put_card(cards, ROWS)
    assert known_as("mine", own(tmp_path, rows)) == "mine"


def test_an_edition_is_known_by_its_rows_though_the_data_are_not_here(tmp_path: Path, cards: Path) -> None:
    mine = own(tmp_path, ROWS)
    rows = questions.build(card.from_file(str(tmp_path / "mine.jsonl"), question_key="Frage", answer_key="Antwort"))
    put_card(cards, ROWS, editions=[{"rows": rows.rows_digest, "questions": 3, "of": "a copy"}])
    (cards / "sums.jsonl").unlink()
    assert known_as("mine", mine) == "sums"
    put_card(cards, ROWS)
    (cards / "sums.jsonl").unlink()
    assert known_as("mine", mine) == "mine"


def test_a_card_keeps_its_own_name(tmp_path: Path, cards: Path) -> None:
    put_card(cards, ROWS)
    assert known_as("demo", own(tmp_path, ROWS)) == "demo"


def test_a_run_of_such_a_file_stands_beside_what_is_published(tmp_path: Path, cards: Path) -> None:
    folder = write_run(tmp_path / "run", benchmarks=[("mine", 30, 16)])
    asked = [(q.messages[-1].content, q.references[0]) for q in question_file.read(folder.benchmark("mine"))]
    put_card(cards, asked)
    published = {
        "schema": 1,
        "source": {"title": "A paper", "url": "https://example.org", "by": "authors"},
        "questions": {"sums": 30},
        "scores": [{"model": "org/model-7b", "benchmark": "sums", "metric": "pass@1", "percent": 50.0, "samples": 64}],
    }
    (tmp_path / "paper.yaml").write_text(yaml.safe_dump(published))
    words = ("verify", "run", "--published", "paper.yaml")
    done = harness(tmp_path, *words, extra={"HARNESS_DATASETS": str(cards)})
    assert done.out.startswith("mine (sums): "), done.err
    put_card(cards, asked[1:])
    assert harness(tmp_path, *words, extra={"HARNESS_DATASETS": str(cards)}).code == 2
