"""Each reference answer of each set is right when boxed, and wrong when changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.benchmarks import catalogue, questions
from harness.core.records import Question
from harness.grading import grade
from tests.benchmarks.test_benchmarks_real_files import FILES
from tests.runs import recorded


def verdict(question: Question, answer: str) -> str:
    reply = f"Therefore the answer is $\\boxed{{{answer}}}$."
    sample = recorded.sample(question.question_id, 0, reply, benchmark=question.benchmark)
    return grade(question, sample).verdict


@pytest.mark.parametrize("file", FILES)
def test_every_reference_is_right_against_itself(shared_data: Path, file: str) -> None:
    name, count = FILES[file]
    built = questions.build(catalogue.load(name).with_data(str(shared_data / file)))
    wrong = [(q.question_id, text) for q in built.questions for text in q.references if verdict(q, text) != "correct"]
    print(f"{name:14} {count:5} rows of {file}: {count - len({i for i, _ in wrong})} right against themselves")  # noqa: T201
    assert wrong == []


def test_the_demos_references_are_right_against_themselves() -> None:
    for question in questions.build(catalogue.load("demo")).questions:
        assert verdict(question, question.references[0]) == "correct"


@pytest.mark.parametrize("file", ["aime24.jsonl", "aime25.jsonl", "aime26.jsonl", "amc23.jsonl", "gsm8k.jsonl"])
def test_a_neighbouring_number_is_wrong(shared_data: Path, file: str) -> None:
    built = questions.build(catalogue.load(FILES[file][0]).with_data(str(shared_data / file)))
    for question in built.questions:
        assert verdict(question, str(float(question.references[0]) + 1).removesuffix(".0")) == "wrong"


def test_a_number_that_no_row_has_is_never_right(shared_data: Path) -> None:
    for file in ("hmmt_feb_2025.jsonl", "math500.jsonl", "olympiadbench.jsonl"):
        listed = questions.build(catalogue.load(FILES[file][0]).with_data(str(shared_data / file))).questions
        for question in listed[:150]:
            wrong_answer = "987654321"
            assert question.references[0] != wrong_answer
            assert verdict(question, wrong_answer) != "correct"
