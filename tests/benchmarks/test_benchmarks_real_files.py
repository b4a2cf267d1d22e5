"""Every shipped card reads its real file, and its references grade as right.

What the questions hold is pinned, of made-up rows and of the real files (`tests.pins.test_pinned_cards`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks import catalogue, questions
from harness.benchmarks.card import Card
from harness.benchmarks.prompts import BOXED
from harness.core.records import Question
from harness.grading import grade
from tests.pins.held import read
from tests.pins.test_pinned_cards import CARDS
from tests.runs import recorded

FILES = {
    "aime24.jsonl": ("aime24", 30),
    "aime24_with_solutions.jsonl": ("aime24", 30),
    "aime25.jsonl": ("aime25", 30),
    "aime25_expected_answer.jsonl": ("aime25", 30),
    "aime26.jsonl": ("aime26", 30),
    "hmmt_feb_2025.jsonl": ("hmmt_feb25", 30),
    "amc23.jsonl": ("amc23", 40),
    "math500.jsonl": ("math500", 500),
    "math500_with_solutions.jsonl": ("math500", 500),
    "gsm8k.jsonl": ("gsm8k", 1319),
    "olympiadbench.jsonl": ("olympiadbench", 675),
    "minerva_math.jsonl": ("minerva", 272),
    "minerva_limo.jsonl": ("minerva", 272),
    "cn_math_2024.jsonl": ("chmath", 30),
    "gaokao.jsonl": ("gaokao", 79),
    "kaoyan.jsonl": ("kaoyan", 199),
    "grade_school_math.jsonl": ("gradeschool", 210),
    "varmath_aime24.jsonl": ("varmath_aime24", 30),
    "varmath_aime24_twins.jsonl": ("varmath_aime24_twins", 126),
    "varmath_amc23.jsonl": ("varmath_amc23", 40),
    "varmath_amc23_twins.jsonl": ("varmath_amc23_twins", 183),
}
WITH_INSTRUCTION = ("aime24.jsonl", "aime25.jsonl", "aime26.jsonl", "hmmt_feb_2025.jsonl", "math500.jsonl")


def verdict(question: Question, answer: str) -> str:
    reply = f"Therefore the answer is $\\boxed{{{answer}}}$."
    sample = recorded.sample(question.question_id, 0, reply, benchmark=question.benchmark)
    return grade(question, sample).verdict


@pytest.mark.parametrize("file", FILES)
def test_the_file_is_a_known_edition_and_asks_its_instruction_once(shared_data: Path, file: str) -> None:
    name, count = FILES[file]
    card = catalogue.load(name)
    path = shared_data / file
    built = questions.build(card.with_data(str(path)), prompt="boxed")
    assert built.n_all == len(set(built.ids)) == count
    assert built.rows_digest in {card.checksum, *(edition.rows for edition in card.editions)}
    assert not any("does not know" in note for note in built.notes)
    texts = [question.last_turn for question in built.questions]
    assert all(text.count(r"\boxed{}") == 1 and text.endswith("\n" + BOXED) for text in texts)
    assert any("carry the instruction" in note for note in built.notes) == (file in WITH_INSTRUCTION)
    if file in WITH_INSTRUCTION:
        as_they_are = questions.build(card.with_data(str(path)), prompt="none").questions
        rows = map(json.loads, path.read_text("utf-8").splitlines())
        assert [question.last_turn for question in as_they_are] == [row["prompt"] for row in rows]


def answers(card: Card) -> str:
    return questions.answers_digest(question.references for question in questions.build(card).questions)


@pytest.mark.parametrize(
    ("one", "second"),
    [
        ("aime24.jsonl", "aime24_with_solutions.jsonl"),
        ("aime25.jsonl", "aime25_expected_answer.jsonl"),
        ("math500.jsonl", "math500_with_solutions.jsonl"),
        ("minerva_math.jsonl", "minerva_limo.jsonl"),
    ],
)
def test_two_layouts_of_a_set_give_the_same_references(shared_data: Path, one: str, second: str) -> None:
    first, other = (catalogue.load(FILES[file][0]).with_data(str(shared_data / file)) for file in (one, second))
    assert answers(first) == answers(other)


def graded(asked: Iterable[Question], *, by_number: bool) -> None:
    """Each reference is right; a number that no row has is not; by_number: nor is the neighbouring one."""
    for question in asked:
        assert [verdict(question, reference) for reference in question.references] == ["correct"] * len(
            question.references
        ), question.question_id
        assert verdict(question, "987654321") != "correct", question.question_id
        if by_number:
            neighbour = str(float(question.references[0]) + 1).removesuffix(".0")
            assert verdict(question, neighbour) == "wrong", question.question_id


BY_NUMBER = ("aime24", "aime25", "aime26", "amc23", "gsm8k")


@pytest.mark.parametrize("file", FILES)
def test_every_reference_of_a_file_is_right_against_itself_alone(shared_data: Path, file: str) -> None:
    name = FILES[file][0]
    built = questions.build(catalogue.load(name).with_data(str(shared_data / file)))
    graded(built.questions, by_number=name in BY_NUMBER)


@pytest.mark.parametrize("name", sorted({name for name, _ in FILES.values()}))
def test_every_reference_of_pinned_rows_is_right_against_itself_alone(tmp_path: Path, name: str) -> None:
    path = tmp_path / "rows.jsonl"
    rows: list[dict[str, Any]] = read(CARDS)[name]["rows"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    built = questions.build(catalogue.load(name).with_data(str(path)))
    graded(built.questions, by_number=name in BY_NUMBER)


def test_the_demos_references_are_right_against_themselves() -> None:
    for question in questions.build(catalogue.load("demo")).questions:
        assert verdict(question, question.references[0]) == "correct"


def test_what_stands_beside_a_question_reaches_its_rules(tmp_path: Path) -> None:
    """Rules are in no pin: a tolerance of a row, and one of a card."""
    for name, place, tolerance in (("olympiadbench", 2, (0.1, 0.0)), ("minerva", 0, (0.0, 0.01))):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in read(CARDS)[name]["rows"]), "utf-8")
        rules = questions.build(catalogue.load(name).with_data(str(path))).questions[place].rules
        assert (rules.absolute_tolerance, rules.relative_tolerance) == tolerance
