"""A user's file that holds a card's questions stands beside what is published of them; any other file does not.

For: harness.verbs.known_questions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from harness.benchmarks import card, catalogue, questions
from harness.core.records import Question
from harness.runs import questions as question_file
from harness.runs.layout import RunFolder
from harness.runs.manifest import OUTPUTS, BenchmarkRecord, Plan
from harness.verbs import compare, known_questions
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


def known_as(name: str, run_questions: Sequence[Question], **settings: object) -> str | None:
    """The name under which scores of these questions are published. settings: what the run recorded."""
    return known_questions.known_as(
        name, BenchmarkRecord(identity={}, plan=Plan(samples=1), settings=settings), run_questions
    )


@pytest.mark.parametrize(
    ("rows", "known"),
    [
        ([("What is 5 ·  5?\n", "25.0"), *ROWS[:2]], True),
        (ROWS[:2], False),
        ((*ROWS, ("What is 2 + 2?", "4")), False),
        ((*ROWS[:2], ("What is 5 · 5?", "26")), False),
        ((*ROWS[:2], ROWS[0]), False),
    ],
    ids=["another order and spaces", "one less", "one more", "another reference", "one twice"],
)
def test_a_file_with_all_references_of_a_card_has_its_questions(
    rows: Sequence[tuple[str, str]], known: bool, tmp_path: Path, cards: Path
) -> None:
    put_card(cards, ROWS, answers_checksum=questions.answers_digest([answer] for _, answer in ROWS))
    assert known_as("mine", own(tmp_path, rows)) == ("sums" if known else "mine")


def test_an_edition_is_known_by_its_rows_though_the_data_are_not_here(tmp_path: Path, cards: Path) -> None:
    mine = own(tmp_path, ROWS)
    rows = questions.build(card.from_file(str(tmp_path / "mine.jsonl"), question_key="Frage", answer_key="Antwort"))
    put_card(cards, ROWS, editions=[{"rows": rows.rows_digest, "questions": 3, "of": "a copy"}])
    (cards / "sums.jsonl").unlink()
    assert known_as("mine", mine) == "sums"
    put_card(cards, ROWS)
    (cards / "sums.jsonl").unlink()
    assert known_as("mine", mine) == "mine"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "aime24"),
        ({catalogue.DATA: "/home/me/aime24.jsonl"}, None),
        ({catalogue.CARD: "/home/me/aime24.yaml"}, None),
        ({question_file.MADE: {"rows_digest": "0" * 64, "origin": "/home/me/aime24.jsonl"}}, None),
        ({catalogue.DATA: "hf://datasets/me/aime24", question_file.MADE: {"rows_digest": "ROWS"}}, "aime24"),
        ({OUTPUTS: {"digest": "", "read": {}}}, None),
        ({OUTPUTS: {"digest": "", "read": {"benchmark": "aime24"}}}, "aime24"),
    ],
    ids=["card", "data", "own card", "older run", "an edition", "outputs", "outputs of a benchmark"],
)
def test_the_name_of_a_card_is_not_enough(settings: dict[str, object], name: str | None, tmp_path: Path) -> None:
    rows = catalogue.load("aime24").editions[0].rows
    recorded = json.loads(json.dumps(settings).replace("ROWS", rows))
    assert known_as("aime24", own(tmp_path, ROWS), **recorded) == name


def test_a_name_without_a_card_stays(tmp_path: Path) -> None:
    assert known_as("mine", own(tmp_path, ROWS), **{catalogue.DATA: "mine.jsonl"}) == "mine"


def test_a_file_under_the_name_of_a_card_has_none_of_its_published_scores_beside(tmp_path: Path) -> None:
    """In the verdict, the report and the viewer; the same run by the card has them."""
    model = {"model": "Qwen/QwQ-32B", "benchmarks": [("aime24", 30, 4)]}
    write_run(tmp_path / "card", **model)
    write_run(tmp_path / "own", **model, settings={catalogue.DATA: str(tmp_path / "aime24.jsonl")})
    sentence = "no published score stands beside this run: its questions are not known to be those of aime24"
    done = harness(tmp_path, "verify", "own")
    assert (done.code, done.out.splitlines()[0]) == (1, "aime24: cannot say")
    assert sentence in done.out
    assert "LLMEval" not in done.out
    printed = json.loads(harness(tmp_path, "verify", "own", "--json").out)
    assert (printed[0]["comparisons"], printed[0]["reason"][:35]) == ([], sentence[:35])
    report = harness(tmp_path, "report", "own").out
    assert sentence in report
    assert "78.65" not in report
    assert compare.published_beside(RunFolder.open(tmp_path / "own"), "aime24").startswith(sentence)

    assert "LLMEval" in harness(tmp_path, "verify", "card").out
    by_card = harness(tmp_path, "report", "card").out
    assert "78.65" in by_card
    assert sentence not in by_card


def test_a_run_of_such_a_file_stands_beside_what_is_published(tmp_path: Path, cards: Path) -> None:
    folder = write_run(tmp_path / "run", benchmarks=[("mine", 30, 16)])
    asked = [(q.messages[-1].content, q.references[0]) for q in question_file.read(folder.benchmark("mine"))]
    put_card(cards, asked, answers_checksum=questions.answers_digest([answer] for _, answer in asked))
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
