"""The grades of a journal in the order of questions and sample indices, whatever the order of its lines, in little
memory.

A sample is known by its mark, `question number << 32 | sample index`, so that sorting marks sorts samples. The journal
is read once; each sample goes one of two ways:

    a former grade has this mark, and grader and basis are unchanged  →  reused: the position of the former grade
    otherwise                                                         →  fresh:  graded by the pool

Grades stay packed. At the end both lists of marks are sorted together, and the grades are read out in that order.
"""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.codec import digest
from harness.core.errors import StoreError
from harness.core.packed import Packed
from harness.core.records import Grade, Question, Sample
from harness.grading.processes import pool
from harness.runs import BenchmarkFolder, JournalReport, grades, read_samples
from harness.scoring.observed import Observed, Rows

_INDEX_BITS = 32
"""Bits of the mark that hold the sample index.

Samples with a larger or negative index are ignored, because no plan contains them.
"""

_OPEN_BLOCKS = 2048
"""Blocks of fresh grades that stay unpacked while grades are read in order.

A journal visits the questions in turn, so the grades of one question lie in as many blocks as it has samples.
"""


class ById(Mapping[str, Question]):
    """Questions by their ids. questions: possibly packed; numbers: id → index among them."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = questions
        self.numbers = {question.question_id: number for number, question in enumerate(questions)}

    def __getitem__(self, question_id: str) -> Question:
        return self.questions[self.numbers[question_id]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """The grades of a journal, in the order of questions and sample indices.

    question, index, rows: of each grade, its question's number, its sample index and its row in `observed`. observed:
    facts of every sample of the journal. report: what was wrong with the journal's lines.
    """

    grades: Sequence[Grade]
    question: NDArray[np.uint32]
    index: NDArray[np.uint32]
    rows: Rows
    observed: Observed
    report: JournalReport


class _Marks:
    """Marks of samples and their rows in `Observed`, below 2³², side by side."""

    def __init__(self) -> None:
        self.mark, self.row = array("q"), array("I")

    def add(self, mark: int, row: int) -> None:
        self.mark.append(mark)
        self.row.append(row)

    def __len__(self) -> int:
        return len(self.mark)


class _Former:
    """The grades of an earlier scoring that are still valid: same question, grader and basis."""

    def __init__(self, folder: BenchmarkFolder, by_id: ById, bases: Sequence[str], sandbox: str | None) -> None:
        names = pool.grader_names(by_id.questions, sandbox)
        graders = [names[question.rules.grader] for question in by_id.questions]
        self.grades: Packed[Grade] = Packed(Grade)
        marks = array("q")
        with contextlib.suppress(StoreError):  # Unreadable grades are made again.
            for grade in grades.read(folder):
                number = by_id.numbers.get(grade.question_id)
                if number is not None and (grade.grader, grade.basis) == (graders[number], bases[number]):
                    marks.append(_mark(number, grade.sample_index))
                    self.grades.append(grade)
        order = np.argsort(np.frombuffer(marks, dtype=np.int64), kind="stable")
        self._marks = array("q", np.frombuffer(marks, dtype=np.int64)[order].tobytes())
        self._positions = array("q", order.tobytes())

    def position(self, mark: int) -> int | None:
        """The position in `grades` of the sample with this mark, None without; of several grades the last counts."""
        i = bisect_right(self._marks, mark) - 1
        return self._positions[i] if i >= 0 and self._marks[i] == mark else None


def _mark(question_number: int, sample_index: int) -> int:
    return (question_number << _INDEX_BITS) + sample_index


def grade_journal(
    folder: BenchmarkFolder,
    by_id: ById,
    *,
    workers: int,
    deadline_s: float,
    fresh: bool,
    on_graded: Callable[[int], None],
    span: tuple[int, int] | None = None,
    sandbox: str | None = None,
) -> Graded:
    """The grades of every sample whose question is in `by_id`; earlier grades that are still valid are reused.

    fresh: reuse none. span: only a part of the journal, as for `read_samples`. sandbox: of programs. on_graded: called
    with the number of samples graded so far. Raises `StoreError`, and `UsageError` as `pool.grade_all` does.
    """
    interned: dict[str, str] = {}  # Equal digests share one object: a large set repeats a few references.
    bases = [interned.setdefault(text, text) for text in map(basis, by_id.questions)]
    ids = [*by_id]
    former = None if fresh or not folder.grades.exists() else _Former(folder, by_id, bases, sandbox)
    reader, observed = read_samples(folder, span=span), Observed()
    reused, new = _Marks(), _Marks()
    former_positions = array("q")  # Positions in `former.grades` of the samples in `reused`.

    def ungraded() -> Iterator[Sample]:
        for sample in reader:
            row = observed.observe(sample)
            number = by_id.numbers.get(sample.question_id)
            if number is None or sample.sample_index >> _INDEX_BITS:
                continue
            mark = _mark(number, sample.sample_index)
            position = None if former is None else former.position(mark)
            if position is not None:
                reused.add(mark, row)
                former_positions.append(position)
            else:
                new.add(mark, row)
                yield sample

    graded: Packed[Grade] = Packed(Grade, open_blocks=_OPEN_BLOCKS)
    for grade in pool.grade_all(by_id, ungraded(), workers=workers, deadline_s=deadline_s, sandbox=sandbox):
        number = by_id.numbers[grade.question_id]
        graded.append(msgspec.structs.replace(grade, question_id=ids[number], basis=bases[number]))
        on_graded(len(graded))

    marks = np.frombuffer(reused.mark + new.mark if reused else new.mark, dtype=np.int64)
    order = np.argsort(marks, kind="stable")
    question = (marks[order] >> _INDEX_BITS).astype(np.uint32)
    index = marks[order] & ((1 << _INDEX_BITS) - 1)
    rows = np.frombuffer(reused.row + new.row if reused else new.row, dtype=np.uint32)[order].astype(np.int64)

    def in_order() -> Iterator[Grade]:
        for i in range(len(order)):
            source, row = int(order[i]), int(rows[i])
            if source >= len(reused):
                grade = graded[source - len(reused)]
            else:
                assert former is not None
                grade = former.grades[former_positions[source]]
            shown = observed.anomalies(row)  # An earlier version may have found other signs.
            yield grade if grade.anomalies == shown else msgspec.structs.replace(grade, anomalies=shown)

    return Graded(
        grades=Packed(Grade, in_order()),
        question=question,
        index=index.astype(np.uint32),
        rows=rows,
        observed=observed,
        report=reader.report,
    )


def basis(question: Question) -> str:
    """Short digest of the parts of a question on which its grades depend: references, kind, rules, choices."""
    rules = msgspec.to_builtins(question.rules)
    return digest([question.references, question.kind, rules, question.choices])[:12]
