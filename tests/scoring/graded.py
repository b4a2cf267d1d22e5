"""Questions and grades written down by hand: `grades_of(q1="ccw.")` is one character a sample."""

from __future__ import annotations

from typing import Any

from harness.core.records import Grade, Question, VerdictName

VERDICTS: dict[str, VerdictName] = {"c": "correct", "w": "wrong", "v": "wrong", "n": "no_answer", "u": "undecided"}


def question(question_id: str, benchmark: str = "demo", **metadata: Any) -> Question:
    return Question(
        benchmark=benchmark,
        question_id=question_id,
        prompt="1+1?",
        references=("2",),
        kind="integer",
        metadata=metadata,
        row_digest=f"row-{question_id}",
        prompt_digest="",
    )


def grade(question_id: str, index: int, letter: str, **changes: Any) -> Grade:
    """c: correct, vote 2 · w, v: wrong, votes 3 and 4 · n: no answer · u: undecided, vote 5."""
    votes = {"c": "2", "w": "3", "v": "4", "u": "5"}
    fields: dict[str, Any] = {
        "benchmark": "demo",
        "question_id": question_id,
        "sample_index": index,
        "verdict": VERDICTS[letter],
        "extracted": votes.get(letter),
        "rule": "integer",
        "grader": "rules/1",
        "vote": votes.get(letter),
        "completion_tokens": 100,
    }
    return Grade(**{**fields, **changes})


def graded(**letters: str) -> tuple[list[Question], list[Grade]]:
    """Questions and grades of `q1="cw.n"`; a dot is a missing sample."""
    questions = [question(name) for name in letters]
    grades = [
        grade(name, index, letter) for name, row in letters.items() for index, letter in enumerate(row) if letter != "."
    ]
    return questions, grades
