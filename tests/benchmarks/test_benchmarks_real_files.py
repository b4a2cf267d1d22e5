"""Every shipped card reads its real file, and its references grade as right.

What the questions hold is pinned, of made-up rows and of the real files (`tests.pins.test_pinned_cards`).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.benchmarks import catalog, questions
from harness.benchmarks.prompts import BOXED
from harness.core.records import Question
from harness.grading import grade
from tests.benchmarks.hub_server import jsonl
from tests.pins.held import read_pins
from tests.pins.test_pinned_cards import CARDS, FILES
from tests.runs import recorded

EDITIONS = {file: (pinned["card"], pinned["asked"]["n"]) for file, pinned in read_pins(FILES).items()}
WITH_INSTRUCTION = ("aime24.jsonl", "aime25.jsonl", "aime26.jsonl", "hmmt_feb_2025.jsonl", "math500.jsonl")


def verdict(question: Question, answer: str) -> str:
    reply = f"Therefore the answer is $\\boxed{{{answer}}}$."
    sample = recorded.sample(question.question_id, 0, reply, benchmark=question.benchmark)
    return grade(question, sample).verdict


@pytest.mark.parametrize("file", EDITIONS)
def test_the_file_is_a_known_edition_and_asks_its_instruction_once(shared_data: Path, file: str) -> None:
    name, count = EDITIONS[file]
    card = catalog.load(name)
    path = shared_data / file
    built = questions.build(card.with_data(str(path)), prompt="boxed")
    assert built.n_all == len(set(built.ids)) == count
    assert built.rows_digest in {card.checksum, *(edition.rows for edition in card.editions)}
    assert not any("does not know" in note for note in built.notes)
    texts = [question.last_turn for question in built.questions]
    assert all(text.count(r"\boxed{}") == 1 and text.endswith("\n" + BOXED) for text in texts)
    assert any("contain the prompt's instruction" in note for note in built.notes) == (file in WITH_INSTRUCTION)
    if file in WITH_INSTRUCTION:
        as_they_are = questions.build(card.with_data(str(path)), prompt="none").questions
        rows = map(json.loads, path.read_text("utf-8").splitlines())
        assert [question.last_turn for question in as_they_are] == [row["prompt"] for row in rows]


def graded(name: str, rows: Path) -> None:
    """Each reference is right; a number that no row has is not; where answers are numbers, nor is the next one."""
    for question in questions.build(catalog.load(name).with_data(str(rows))).questions:
        for reference in question.references:
            assert verdict(question, reference) == "correct", question.question_id
        assert verdict(question, "987654321") != "correct", question.question_id
        if name in BY_NUMBER:
            neighbor = str(float(question.references[0]) + 1).removesuffix(".0")
            assert verdict(question, neighbor) == "wrong", question.question_id


BY_NUMBER = ("aime24", "aime25", "aime26", "amc23", "gsm8k")


@pytest.mark.parametrize("file", EDITIONS)
def test_every_reference_of_a_file_is_right_against_itself_alone(shared_data: Path, file: str) -> None:
    graded(EDITIONS[file][0], shared_data / file)


@pytest.mark.parametrize("name", ["demo", *sorted({name for name, _ in EDITIONS.values()})])
def test_every_reference_of_pinned_rows_is_right_against_itself_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "rows.jsonl").write_bytes(jsonl(read_pins(CARDS)[name]["rows"]))
    graded(name, tmp_path / "rows.jsonl")


def test_what_stands_beside_a_question_reaches_its_rules(tmp_path: Path) -> None:
    """Rules are in no pin: a tolerance of a row, and one of a card."""
    for name, place, tolerance in (("olympiadbench", 2, (0.1, 0.0)), ("minerva", 0, (0.0, 0.01))):
        (tmp_path / name).write_bytes(jsonl(read_pins(CARDS)[name]["rows"]))
        rules = questions.build(catalog.load(name).with_data(str(tmp_path / name))).questions[place].rules
        assert (rules.absolute_tolerance, rules.relative_tolerance) == tolerance
