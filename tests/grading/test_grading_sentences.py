"""A reply without a box states an answer by closed forms of sentences; no other sentence makes its number correct."""

from __future__ import annotations

import pytest

import harness
from tests.grading import sentences

SIZE = 4_000
"""Number of generated sentences that state nothing; `make fuzz` may raise it."""


def outcome(reference: str, reply: str) -> str:
    return harness.grade(reference, reply).outcome


def test_a_sentence_that_states_no_answer_is_never_correct() -> None:
    accepted = [pair for pair in sentences.unstated(27, SIZE) if outcome(*pair) == "correct"]
    assert accepted == []


def test_a_sentence_that_states_the_answer_is_correct() -> None:
    refused = [pair for pair in sentences.stated() if outcome(*pair) != "correct"]
    assert refused == []


@pytest.mark.parametrize(("reference", "right", "wrong"), sentences.CHINESE, ids=lambda text: text[:12])
def test_a_class_of_chinese_questions(reference: str, right: str, wrong: str) -> None:
    assert outcome(reference, right) == "correct"
    assert outcome(reference, wrong) != "correct"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("This answer is correct because the answer is 3.", "correct"),
        ("This answer is correct because the answer is 4.", "wrong"),
        ("There are 3 of them left to check.", "undecided"),
        ("There are 4 of them left to check.", "wrong"),
    ],
)
def test_what_a_sentence_decides(reply: str, answer: str) -> None:
    assert outcome("3", reply) == answer
