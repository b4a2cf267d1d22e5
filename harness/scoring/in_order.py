"""The grades of a journal in the order of the questions, whatever the order of its lines, in little memory.

The samples are gone through once. Their grades are kept packed and their numbers in columns; grades of a former scoring
that hold still are taken over.
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

from harness.core.checksums import digest
from harness.core.errors import StoreError
from harness.core.packed import Packed
from harness.core.records import Grade, Question, Sample
from harness.grading.processes import pool
from harness.runs import BenchmarkFolder, JournalReport, grades, read_samples
from harness.scoring.observed import Observed, Rows

_INDEX_BITS = 32
"""Of the number by which grades sort; a sample of an index that needs more, or below 0, is none of any plan."""

_OPEN_BLOCKS = 2048
"""Blocks of fresh grades that stay unpacked while they are put in order: a journal goes round the questions, so those
of one question stand in as many blocks as it has samples."""


class ById(Mapping[str, Question]):
    """Questions by their ids, looked up where they are packed."""

    def __init__(self, asked: Sequence[Question]) -> None:
        self.asked = asked
        self.places = {question.question_id: place for place, question in enumerate(asked)}

    def __getitem__(self, question_id: str) -> Question:
        return self.asked[self.places[question_id]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """Every sample's grade, in the order of questions and indices; their sample indices, and their rows in `observed`,
    which knows every sample of the journal that `report` is about."""

    grades: Sequence[Grade]
    index: NDArray[np.uint32]
    rows: Rows
    observed: Observed
    report: JournalReport


class _Marks:
    """Samples to be put in order. mark: a number by which they sort; row: in `Observed`, fewer than 2³²."""

    def __init__(self) -> None:
        self.mark, self.row = array("q"), array("I")

    def add(self, mark: int, row: int) -> None:
        self.mark.append(mark)
        self.row.append(row)

    def __len__(self) -> int:
        return len(self.mark)


class _Former:
    """The grades that a former scoring left and that hold still. `places`: of the questions, by id."""

    def __init__(self, folder: BenchmarkFolder, by_id: ById, bases: Sequence[str]) -> None:
        names = pool.grader_names(by_id.asked)
        graders = [names[question.rules.grader] for question in by_id.asked]
        self.grades: Packed[Grade] = Packed(Grade)
        marks = array("q")
        with contextlib.suppress(StoreError):  # what cannot be read can be had again
            for grade in grades.read(folder):
                at = by_id.places.get(grade.question_id)
                if at is not None and (grade.grader, grade.basis) == (graders[at], bases[at]):
                    marks.append(_mark(at, grade.sample_index))
                    self.grades.append(grade)
        order = np.argsort(np.frombuffer(marks, dtype=np.int64), kind="stable")
        self._marks = array("q", np.frombuffer(marks, dtype=np.int64)[order].tobytes())
        self._places = array("q", order.tobytes())

    def place(self, mark: int) -> int | None:
        """Where the grade of the sample stands in `grades`; of several the last counts."""
        at = bisect_right(self._marks, mark) - 1
        return self._places[at] if at >= 0 and self._marks[at] == mark else None


def _mark(question: int, index: int) -> int:
    return (question << _INDEX_BITS) + index


def grade_journal(
    folder: BenchmarkFolder,
    by_id: ById,
    *,
    workers: int,
    deadline_s: float,
    fresh: bool,
    on_graded: Callable[[int], None],
    span: tuple[int, int] | None = None,
) -> Graded:
    """Every sample of a known question graded; former grades are kept where nothing changed, unless `fresh`.

    span: only of a part of the journal, as for `read_samples`. on_graded: called with the number of samples graded so
    far. Raises `StoreError`, and `UsageError` as `pool.grade_all` does.
    """
    shared: dict[str, str] = {}  # questions with one reference have one text of its digest
    bases = [shared.setdefault(one, one) for one in map(basis, by_id.asked)]
    ids = [*by_id]
    former = None if fresh or not folder.grades.exists() else _Former(folder, by_id, bases)
    reader, observed = read_samples(folder, span=span), Observed()
    kept, new = _Marks(), _Marks()
    places = array("q")  # of the grades of those that are kept

    def ungraded() -> Iterator[Sample]:
        for sample in reader:
            row = observed.observe(sample)
            at = by_id.places.get(sample.question_id)
            if at is None or sample.sample_index >> _INDEX_BITS:
                continue
            mark = _mark(at, sample.sample_index)
            known = None if former is None else former.place(mark)
            if known is not None:
                kept.add(mark, row)
                places.append(known)
            else:
                new.add(mark, row)
                yield sample

    made: Packed[Grade] = Packed(Grade, open_blocks=_OPEN_BLOCKS)
    for grade in pool.grade_all(by_id, ungraded(), workers=workers, deadline_s=deadline_s):
        at = by_id.places[grade.question_id]
        made.append(msgspec.structs.replace(grade, question_id=ids[at], basis=bases[at]))
        on_graded(len(made))

    marks = np.frombuffer(kept.mark + new.mark if kept else new.mark, dtype=np.int64)
    order = np.argsort(marks, kind="stable")
    index = marks[order]
    index &= (1 << _INDEX_BITS) - 1
    rows = np.frombuffer(kept.row + new.row if kept else new.row, dtype=np.uint32)[order].astype(np.int64)

    def in_order() -> Iterator[Grade]:
        for at in range(len(order)):
            source, row = int(order[at]), int(rows[at])
            if source >= len(kept):
                grade = made[source - len(kept)]
            else:
                assert former is not None
                grade = former.grades[places[source]]
            shown = observed.anomalies(row)
            yield grade if grade.anomalies == shown else msgspec.structs.replace(grade, anomalies=shown)

    return Graded(
        grades=Packed(Grade, in_order()),
        index=index.astype(np.uint32),
        rows=rows,
        observed=observed,
        report=reader.report,
    )


def basis(question: Question) -> str:
    """Short digest of everything of a question that its grades depend on."""
    rules = msgspec.to_builtins(question.rules)
    return digest([question.references, question.kind, rules, question.choices])[:12]
