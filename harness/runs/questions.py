"""The file `questions.jsonl`: what was asked, with the reference answers, as grading will see it."""

from __future__ import annotations

from collections.abc import Iterable

from harness.core.errors import StoreError
from harness.core.inert import quoted
from harness.core.records import Question
from harness.runs.jsonl import read_lines, write_lines
from harness.runs.layout import BenchmarkFolder

_REMEDY = "Remove the file and give the run's command again to have it rebuilt."


def write(folder: BenchmarkFolder, questions: Iterable[Question]) -> None:
    """Store `questions`, and keep those already there that are not among them: their samples still count.

    Raises `StoreError` when two have one id, when one differs from what was asked before, or the disk refuses.
    """
    asked = {question.question_id: question for question in read(folder)} if folder.questions.exists() else {}
    wanted: dict[str, Question] = {}
    for question in questions:
        name = f"question {quoted(question.question_id)} of {quoted(folder.name)}"
        if question.question_id in wanted:
            raise StoreError(f"{name} occurs twice; an id names one question.")
        before = asked.get(question.question_id, question)
        if before.prompt_digest != question.prompt_digest or before.references != question.references:
            raise StoreError(f"{name} is not as it was when this run began. Use another run folder.")
        wanted[question.question_id] = question
    merged = {**wanted, **{name: question for name, question in asked.items() if name not in wanted}}
    if list(merged.items()) != list(asked.items()):
        write_lines(folder.questions, merged.values())


def read(folder: BenchmarkFolder) -> list[Question]:
    """The questions in the order stored. Raises `StoreError` for a missing, damaged or newer file."""
    return read_lines(folder.questions, Question, _REMEDY)
