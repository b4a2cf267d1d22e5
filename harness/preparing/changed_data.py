"""Continues a run whose data have changed: unchanged questions keep their samples, and the user is told about the rest.

A question matches if its prompt, references, choices and kind equal those of a stored question. It then keeps the
stored id, and so the samples, even if its id in the data is now different (without an id column, any change of a row
changes ids). All other questions are sampled from scratch. Questions that are no longer in the data are removed from
the plan; their samples stay in the folder but are not counted. So a changed question or answer never gets samples of
its old version. If a changed question has its old id in the data, or if no question matches, the run is rejected.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from msgspec.structs import replace as replace_fields

from harness.benchmarks.questions import QuestionSet
from harness.core import codec
from harness.core.errors import StoreError
from harness.core.number_text import count_noun, is_are
from harness.core.records import Question
from harness.core.sanitize import quoted, visible
from harness.runs import Manifest, RunFolder, questions
from harness.runs.layout import BenchmarkFolder
from harness.runs.manifest import BenchmarkRecord

MAX_NAMED = 8
"""Maximum number of changed rows listed in a sentence."""


def resumed(
    sets: Iterable[QuestionSet], folder: RunFolder, warn: Callable[[str], object] = lambda _: None
) -> list[QuestionSet]:
    """The sets with the ids of questions that the run already has. warn: receives a sentence on each change.

    A shard's questions stay as they are. Raises `StoreError`.
    """
    manifest = Manifest.find(folder)
    records = {} if manifest is None else manifest.benchmarks
    return [_resumed(each, folder.benchmark(each.name), records.get(each.name), warn) for each in sets]


def _resumed(
    new: QuestionSet, files: BenchmarkFolder, record: BenchmarkRecord | None, warn: Callable[[str], object]
) -> QuestionSet:
    """One set as `resumed` returns it."""
    # A shard's questions stay unchanged, and a session recreates a missing question file.
    if new.whole is not None or record is None or not (files.has_samples() and files.questions.exists()):
        return new
    former, stored = record.identity.get("dataset_digest"), questions.read(files)
    ids = [question.question_id for question in stored]
    takes_all, is_same = len(new.questions) == new.n_all, new.dataset_digest == former
    if is_same and {*new.ids} <= {*ids} and (not takes_all or len(ids) == new.n_all):
        return new
    if not isinstance(former, str) or record.identity.get("prompt_digest") != new.template_digest:
        return new  # a different prompt: the session rejects it by name
    was = _former_numbers(new.questions, stored)
    known = {number for number in was if number is not None}
    planned = {*ids} if record.plan.question_ids is None else {*record.plan.question_ids}
    gone = [number for number, name in enumerate(ids) if takes_all and number not in known and name in planned]
    fresh = [at for at, number in enumerate(was) if number is None]
    listed = _listed_changes(new, fresh, stored, gone, files)
    begun = f"{visible(new.data_file or new.name)} has changed since this run began"
    taken = {*ids}.intersection(new.questions[at].question_id for at in fresh)
    if taken or not known:
        what = f"{quoted(min(taken))} now has a different question or answer" if taken else "every question has changed"
        refusal = StoreError(f"{begun}: {what}. Use another run folder, or restore the original rows{listed}")
        refusal.other_settings = f"{begun}{listed}"
        raise refusal
    if not is_same:
        counts = [
            f"{count_noun(len(known), 'question and answer', 'questions and answers')} {is_are(len(known))} unchanged"
        ]
        if fresh:
            counts.append(f"{len(fresh)} new")
        if gone:
            counts.append(f"{len(gone)} removed: their samples stay in the folder but are not counted")
        warn(f"{begun}: {', '.join(counts)}{listed}")
    with_ids = (
        question
        if number is None
        else replace_fields(question, question_id=stored[number].question_id, row_digest=stored[number].row_digest)
        for question, number in zip(new.questions, was, strict=True)
    )
    return replace(new, questions=[*with_ids], resumes=former)


def _listed_changes(
    new: QuestionSet, fresh: Sequence[int], stored: Sequence[Question], gone: Sequence[int], files: BenchmarkFolder
) -> str:
    """The end of a sentence: the rows that have changed, and how to grade with changed answers."""
    if not fresh:
        return ""
    rows = ", ".join(str(at + 1) for at in fresh[:MAX_NAMED])
    more = f" and {len(fresh) - MAX_NAMED} more" if len(fresh) > MAX_NAMED else ""
    listed = f". Changed or new: row {rows}{more}"
    asked = {stored[old].prompt_digest for old in gone}
    if any(new.questions[at].prompt_digest in asked for at in fresh):
        source = new.given_data or new.card_file or new.name
        listed += f". To grade the stored replies against the new answers, {questions.grading_anew(files, source)}"
    return listed


def _former_numbers(new: Iterable[Question], stored: Iterable[Question]) -> list[int | None]:
    """For each new question, the number of the equal stored question (each used once); None if there is none."""
    free: dict[bytes, deque[int]] = defaultdict(deque)
    for at, question in enumerate(stored):
        free[_content(question)].append(at)
    return [numbers.popleft() if (numbers := free[_content(question)]) else None for question in new]


def _content(question: Question) -> bytes:
    """The fields that must not change if a question's samples and grades are to remain valid."""
    return codec.encode([question.prompt_digest, question.references, question.choices, question.kind])
