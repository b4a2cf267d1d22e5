"""The file `questions.jsonl`: the questions with their reference answers, as grading sees them."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import zip_longest

from harness.core import codec
from harness.core.codec import digest_of_each
from harness.core.errors import StoreError
from harness.core.images import ImageFolder
from harness.core.records import Question
from harness.core.sanitize import quoted, safe_name, visible
from harness.runs.layout import TRY_SECONDS, BenchmarkFolder, RunFolder
from harness.runs.line_file import iterate_lines, make_folder, write_lines
from harness.runs.manifest import BenchmarkRecord, Manifest

DIGEST = "questions_digest"
"""The setting in a benchmark's record with the `seal` of its questions."""

MADE = "questions_made"
"""The setting with the local file that the questions were made from (`origin`) and the checksum of its rows
(`rows_digest`); absent for questions from another source.
"""

EXPORT_FORMAT = "llmeval"
"""The export format with each sample's question, reference and reply that `harness score` can read."""

BEGIN_SECONDS = 5.0
"""Longest wait, in seconds, for the questions of a session that has written its manifest."""

_REMEDY = "Delete the file and run the same command again to rebuild it."


def merge(folder: BenchmarkFolder, questions: Sequence[Question], *, with_stored: bool = True) -> Sequence[Question]:
    """`questions`, followed by the stored questions that are not among them, since their samples still count.

    with_stored: False if the stored file has no samples and is about to be removed. Raises `StoreError` if two
    questions have the same id or if a question differs from the stored one with the same id.
    """
    is_stored = with_stored and folder.questions.exists()
    # They are almost always the same; comparing one by one avoids having all questions in memory.
    if is_stored and _same(map(_fixed_fields, questions), map(_fixed_fields, iterate(folder))):
        return questions
    digest_by_id: dict[str, bytes] = {}
    for question in questions:
        if question.question_id in digest_by_id:
            raise StoreError(f"{_named(folder, question)} occurs twice; question ids must be unique.")
        digest_by_id[question.question_id] = _content_digest(question)
    earlier = list[Question]()
    for before in iterate(folder) if is_stored else ():
        now = digest_by_id.get(before.question_id)
        if now is None:
            earlier.append(before)
        elif now != _content_digest(before):
            raise StoreError(f"{_named(folder, before)} has changed since this run began. Use another run folder.")
    return [*questions, *earlier] if earlier else questions


def write(folder: BenchmarkFolder, questions: Sequence[Question]) -> None:
    """Store these questions, and keep the stored ones that are not among them.

    Raises `StoreError` if two have the same id, if a question differs from the stored one with the same id, or if the
    disk write fails.
    """
    together = merge(folder, questions)
    if not folder.questions.exists() or not _same(together, iterate(folder)):
        write_lines(folder.questions, together)


def take_images(folder: BenchmarkFolder, questions: Iterable[Question], source: ImageFolder) -> None:
    """Store these questions' images that are not in the run yet. Raises `StoreError`, including if `folder.images` is a
    link.
    """
    names = dict.fromkeys(image.sha256 for question in questions for image in question.images)
    if names:
        make_folder(folder.images)
        ImageFolder(folder.images).take(names, source)


def grading_anew(folder: BenchmarkFolder, source: str) -> str:
    """The end of a sentence: commands that grade the stored replies with the references in `source`."""
    run = folder.path.parent
    exported = run / "exports" / EXPORT_FORMAT / f"{safe_name(folder.name)}.jsonl"
    shown_run, shown_file = (shlex.quote(visible(str(path))) for path in (run, exported))
    export = f"harness export {shown_run} --to {EXPORT_FORMAT}"
    score = f"harness score {shown_file} --benchmark {shlex.quote(visible(source))}"
    by_hand = " Manual verdicts are not carried over." if folder.overrides.exists() else ""
    return f"run `{export}`, then `{score}`; this requests no new replies.{by_hand}"


def _fixed_fields(question: Question) -> tuple[str, str, tuple[str, ...]]:
    """The id and the other fields that must stay unchanged."""
    return question.question_id, question.prompt_digest, question.references


def _content_digest(question: Question) -> bytes:
    """A digest of the fields that must stay unchanged."""
    return sha256(codec.encode([question.prompt_digest, question.references])).digest()


def _named(folder: BenchmarkFolder, question: Question) -> str:
    return f"question {quoted(question.question_id)} of {quoted(folder.name)}"


def _same(left: Iterable[object], right: Iterable[object]) -> bool:
    return all(a == b for a, b in zip_longest(left, right))


def iterate(folder: BenchmarkFolder) -> Iterator[Question]:
    """The questions in stored order. Raises `StoreError` for a missing, damaged or newer file."""
    return iterate_lines(folder.questions, Question, _REMEDY)


def read(folder: BenchmarkFolder) -> list[Question]:
    """The questions in the order stored, as a sequence. Raises `StoreError` for a missing, damaged or newer file."""
    return [*iterate(folder)]


def read_planned(folder: BenchmarkFolder, record: BenchmarkRecord) -> Sequence[Question]:
    """The questions of the benchmark's plan. Raises `StoreError` like `read`, and if the file was changed.

    A change is detected by the digest in the record. A record of an older version has no digest, so only a missing
    question is detected.
    """
    stored = read_sealed(folder, record)
    if (ids := record.plan.question_ids) is None:
        return stored
    numbers = {question.question_id: number for number, question in enumerate(stored)}
    return [stored[numbers[question_id]] for question_id in ids]


def read_sealed(folder: BenchmarkFolder, record: BenchmarkRecord) -> list[Question]:
    """The stored questions. Raises `StoreError` if they match neither the record nor that of a later session.

    A starting session writes the manifest before the questions. So while a process holds the run, a file that is
    missing or does not match is read again, for at most `BEGIN_SECONDS`.
    """
    run, due, is_held, now = RunFolder(folder.path.parent), time.monotonic() + BEGIN_SECONDS, True, record
    while True:
        try:
            stored = read(folder)
            if {question.question_id for question in stored}.issuperset(record.plan.question_ids or ()) and (
                as_sealed(record, stored) or as_sealed(now, stored)
            ):
                return stored
            what = f"its {len(stored)} questions differ from those in the manifest"
            raise StoreError(f"{folder.questions} was changed after the run wrote it: {what}. {_REMEDY}")
        except StoreError:
            # No process was writing to the run before or after this read, and no session ran in between.
            was_held, is_held = is_held, run.other_writer() is not None and time.monotonic() < due
            before, now = now, Manifest.load(run).benchmarks.get(folder.name, record)
            if not (was_held or is_held) and now == before:
                raise
        time.sleep(TRY_SECONDS)


def seal(questions: Iterable[Question]) -> str:
    """A checksum of everything in the questions that a score depends on: prompts, references, choices, kinds, rules.

    The order of the questions does not matter.
    """
    each = sorted(
        (q.question_id, codec.encode([q.prompt_digest, q.references, q.choices, q.kind, q.rules, *q.graded_by_turn]))
        for q in questions
    )
    return "seal-1:" + digest_of_each([name, *codec.decode(rest)] for name, rest in each)


def as_sealed(record: BenchmarkRecord, questions: Iterable[Question]) -> bool:
    """Whether the questions match the seal in the record; True for older records without one."""
    noted: object = record.settings.get(DIGEST)
    return noted is None or seal(questions) == noted
