"""The file `questions.jsonl`: what was asked, with the reference answers, as grading will see it."""

from __future__ import annotations

from collections.abc import Iterable

from harness.core.checksums import digest
from harness.core.errors import StoreError
from harness.core.inert import quoted
from harness.core.records import Question
from harness.runs.jsonl import read_lines, write_lines
from harness.runs.layout import BenchmarkFolder
from harness.runs.manifest import BenchmarkRecord

DIGEST = "questions_digest"
"""The setting of a benchmark's record that holds `digest_of` its file."""

_REMEDY = "Remove the file and give the run's command again to have it rebuilt."


def merged(folder: BenchmarkFolder, questions: Iterable[Question]) -> list[Question]:
    """`questions`, and those of the file that are not among them: their samples still count.

    Raises `StoreError` when two have one id, or when one differs from what was asked before.
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
    return [*wanted.values(), *(question for name, question in asked.items() if name not in wanted)]


def write(folder: BenchmarkFolder, questions: Iterable[Question]) -> None:
    """Store what `merged` makes of `questions`. Raises `StoreError` as it does, or when the disk refuses."""
    together = merged(folder, questions)
    if not folder.questions.exists() or together != read(folder):
        write_lines(folder.questions, together)


def forget(folder: BenchmarkFolder) -> None:
    """Remove the file, if there is one. Raises `StoreError` when the disk refuses, or for a folder in its place."""
    try:
        folder.questions.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"cannot replace {folder.questions}: {error.strerror or error}. {_REMEDY}") from error


def read(folder: BenchmarkFolder) -> list[Question]:
    """The questions in the order stored. Raises `StoreError` for a missing, damaged or newer file."""
    return read_lines(folder.questions, Question, _REMEDY)


def read_planned(folder: BenchmarkFolder, record: BenchmarkRecord) -> list[Question]:
    """The questions of the benchmark's plan. Raises `StoreError` as `read` does, and where the file is not the one that
    the run wrote; a record of an older version does not say, and then only a planned question that is missing shows it.
    """
    stored = read(folder)
    chosen = record.plan.question_ids
    by_id = {question.question_id: question for question in stored}
    lost = [question_id for question_id in chosen or () if question_id not in by_id]
    known = digest_of(stored)
    if lost or record.settings.get(DIGEST, known) != known:
        what = f"it lacks {quoted(lost[0])}" if lost else f"its {len(stored)} questions are not those of the manifest"
        raise StoreError(f"{folder.questions} was changed after the run wrote it: {what}. {_REMEDY}")
    return stored if chosen is None else [by_id[question_id] for question_id in chosen]


def digest_of(questions: Iterable[Question]) -> str:
    """Digest of what was asked and what counts as right, in any order."""
    return digest(sorted([q.question_id, q.prompt_digest, list(q.references), list(q.choices)] for q in questions))
