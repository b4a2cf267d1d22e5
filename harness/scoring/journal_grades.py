"""Grades a journal for a score: reads each sample once and sorts the grades.

Grades are in the order of questions and sample indices, whatever the order of the journal's lines. A sample is
identified by its mark, `question number << 32 | sample index`, so sorting marks sorts samples. The journal is read
once; each sample's grade comes from one of two sources:

    an earlier grade with this mark is still valid (`_Former`)  →  this grade
    otherwise                                                   →  a new grade, by the pool of worker processes

Grades stay packed. At the end the marks are sorted, and the grades are read out in this order.
"""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.codec import digest
from harness.core.errors import StoreError
from harness.core.number_text import count_noun, is_are
from harness.core.records import Grade, Question, Sample
from harness.core.sanitize import visible
from harness.grading import verifier
from harness.grading.processes import pool
from harness.grading.second.judge_messages import without_judge
from harness.presets.grading import GradingOptions
from harness.runs import BenchmarkFolder, JournalReport, grades, read_samples
from harness.scoring.sample_columns import Observed, Rows
from harness.scoring.score import Score
from harness.scoring.vote_groups import Groups, grouped

_INDEX_BITS = 32
"""Number of bits of the mark used for the sample index.

Samples with a larger or negative index are ignored, because no plan contains them.
"""

MAX_NAMED = 3
"""Largest number of damaged lines or conflicting keys that a warning lists; the others are only counted."""


class ById(Mapping[str, Question]):
    """Questions by their ids. questions: possibly packed; numbers: id → index in `questions`."""

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

    question, index, rows: for each grade, the number of its question, its sample index, and its row in `observed`.
    observed: facts about every sample of the journal. report: problems with the journal's lines. changes: sentences
    about samples that were regraded because their grader changed.
    """

    grades: Sequence[Grade]
    question: NDArray[np.uint32]
    index: NDArray[np.uint32]
    rows: Rows
    observed: Observed
    report: JournalReport
    changes: Sequence[str]


class _Samples:
    """The samples whose question is known, in the journal's order: three arrays of equal length.

    mark: sort key of the sample (`_mark`). row: its row in `Observed`, below 2³². source: the position of the sample's
    grade among the earlier grades; or, if negative, −1 minus its position among the new grades.
    """

    def __init__(self) -> None:
        self.mark, self.row, self.source = array("q"), array("I"), array("i")
        self._n_new = 0

    def add(self, mark: int, row: int, former: int | None) -> None:
        """Add the next sample. former: the position of its earlier grade; None: it gets the next new grade."""
        self.mark.append(mark)
        self.row.append(row)
        if former is None:
            self._n_new += 1
        self.source.append(-self._n_new if former is None else former)

    def rows_of(self, marks: Sequence[int]) -> Rows:
        """The rows of these samples, (len(marks),). All of them must have been added."""
        sought = np.array(marks, dtype=np.int64)
        every_mark = np.frombuffer(self.mark, dtype=np.int64)
        indices = np.flatnonzero(np.isin(every_mark, sought))
        indices = indices[np.argsort(every_mark[indices])]
        in_order = indices[np.searchsorted(every_mark[indices], sought)]
        return np.frombuffer(self.row, dtype=np.uint32)[in_order].astype(np.int64)


class _Former:
    """The grades of an earlier or interrupted scoring that are still valid.

    A grade is valid if the grader, the question's `basis` and the reply's checksum are unchanged, unless a verifier hit
    a deadline that is longer now. A grade without a checksum is never valid, because its reply is unknown.

    grades: all grades that may be valid, in file order. bases: the `basis` of each question. options: options of the
    current grading.
    """

    def __init__(self, folder: BenchmarkFolder, by_id: ById, bases: Sequence[str], options: GradingOptions) -> None:
        names = pool.grader_names(by_id.questions, options.sandbox)
        graders = [names[question.rules.grader] for question in by_id.questions]
        self.grades = list[Grade]()
        marks, checksums = array("q"), array("q")
        changed: dict[tuple[str, str], array[int]] = {}  # (earlier grader, current grader) → marks of the samples
        self._damaged: list[str] = []
        # Read this before the grades, because another scoring writes its grades before its score.
        n_before = 0 if folder.fresh_grades.exists() else n_scored(folder)
        n_read = 0
        for grade in grades.read_stored(folder, self._damaged):
            n_read += 1
            number = by_id.numbers.get(grade.question_id)
            if number is None:
                continue
            mark, before = _mark(number, grade.sample_index), without_judge(grade.grader)
            if before != graders[number]:
                changed.setdefault((before, graders[number]), array("q")).append(mark)
            is_same = (grade.grader, grade.basis) == (graders[number], bases[number])
            stopped_after = verifier.seconds_of(grade.rule)  # None: no deadline stopped the verifier
            has_more_time = stopped_after is not None and options.deadline > stopped_after
            if is_same and not has_more_time and grade.reply_checksum is not None:
                marks.append(mark)
                checksums.append(grade.reply_checksum)
                self.grades.append(grade)
        # An interrupted or concurrent grading has not yet written all grades that the previous score counted.
        n_before = 0 if folder.fresh_grades.exists() else n_before
        self._n_gone = max(0, n_before - n_read - len(self._damaged))
        # The sort is stable, so the last of several grades of a sample stays last.
        order = np.argsort(np.frombuffer(marks, dtype=np.int64), kind="stable")
        self._marks = array("q", np.frombuffer(marks, dtype=np.int64)[order].tobytes())
        self._positions = array("q", order.tobytes())
        self._checksums = checksums
        # An interrupted grading has already regraded some of these samples.
        self._changed = {graders: np.setdiff1d(samples, self._marks).size for graders, samples in changed.items()}

    @property
    def changes(self) -> list[str]:
        """Sentences about altered and lost grades, and about each grader change, with the number of regraded
        samples.
        """
        altered = [f"damaged or altered grades that were regraded: {first_few(self._damaged)}"] if self._damaged else []
        if self._n_gone:
            gone = f"{count_noun(self._n_gone, 'grade')} of the previous score {is_are(self._n_gone)} missing"
            altered.append(f"{gone} from grades.jsonl; their samples were regraded")
        return altered + [
            f"{count_noun(n, 'sample')} regraded because the grader changed from {visible(before, 100)} to "
            f"{visible(now, 100)}"
            for (before, now), n in self._changed.items()
            if n
        ]

    def __len__(self) -> int:
        """The number of samples with a grade that may be valid."""
        marks = np.frombuffer(self._marks, dtype=np.int64)  # sorted
        return len(marks) - int((marks[1:] == marks[:-1]).sum())

    def position(self, mark: int, checksum: int) -> int | None:
        """The position of the sample's grade in `grades`, the last if there are several; None if there is none, or if
        it belongs to another reply.

        mark: the sample's mark, from `_mark`. checksum: checksum of its reply.
        """
        i = bisect_right(self._marks, mark) - 1
        if i < 0 or self._marks[i] != mark:
            return None
        position = self._positions[i]
        return position if self._checksums[position] == checksum else None


def n_scored(folder: BenchmarkFolder) -> int:
    """The number of samples in the stored score; 0 if there is no readable score."""
    with contextlib.suppress(StoreError):
        score = Score.load(folder)
        return 0 if score is None else score.n_samples
    return 0


def _mark(question_number: int, sample_index: int) -> int:
    """The sort key of samples: by question, then by index."""
    return (question_number << _INDEX_BITS) + sample_index


def grade_journal(
    folder: BenchmarkFolder,
    by_id: ById,
    options: GradingOptions,
    on_graded: Callable[[int], None],
    span: tuple[int, int] | None = None,
    tool: str = "",
) -> Graded:
    """The grades of every sample whose question is in `by_id`; earlier grades that are still valid are reused.

    span: bytes [start, stop) of the journal; None = all. tool: the name of the offered tool. on_graded: called with the
    number of new grades so far. Raises `StoreError`; `UsageError` for an untrusted verifier.
    """
    interned: dict[str, str] = {}  # Equal digests share one object, because a large benchmark repeats a few references.
    bases = [interned.setdefault(text, text) for text in map(grade_basis, by_id.questions)]
    ids = [*by_id]
    former = None
    if not options.fresh and grades.any_stored(folder):
        former = _Former(folder, by_id, bases, options)
    observed = Observed(asks_program=bool(ids) and by_id[ids[0]].kind == "program", tool=tool)
    report, samples = JournalReport(), _Samples()

    def ungraded() -> Iterator[Sample]:
        """The samples without a valid earlier grade. All samples are added to `observed` and `samples` along the
        way.
        """
        for sample in read_samples(folder, span=span, report=report):
            row = observed.observe(sample)
            number = by_id.numbers.get(sample.question_id)
            if number is None or sample.sample_index >> _INDEX_BITS:
                continue
            mark = _mark(number, sample.sample_index)
            position = None if former is None else former.position(mark, observed.checksums[-1])
            samples.add(mark, row, position)
            if position is None:
                yield sample

    def with_basis(grade: Grade) -> Grade:
        number = by_id.numbers[grade.question_id]
        return msgspec.structs.replace(grade, question_id=ids[number], basis=bases[number])

    def with_checksums(early: Iterable[Grade]) -> list[Grade]:
        """The grades with the checksums of their replies. early: the grades in the order in which they were made."""
        by_mark = {_mark(by_id.numbers[grade.question_id], grade.sample_index): grade for grade in early}
        rows = samples.rows_of([*by_mark])
        return [
            msgspec.structs.replace(grade, reply_checksum=observed.checksums[row])
            for grade, row in zip(by_mark.values(), rows.tolist(), strict=True)
        ]

    graded = list[Grade]()
    keeps = span is None  # Parts of a journal are not kept: machines of a cluster grade them in parallel.
    n_stored = 0 if former is None else len(former)
    with grades.PartialGrades(folder, n_stored, fresh=options.fresh) as partial:
        grading = pool.grade_all(
            by_id,
            ungraded(),
            workers=options.n_workers,
            deadline_s=options.deadline,
            sandbox=options.sandbox,
            keep=(lambda early: partial.append(with_checksums(map(with_basis, early)))) if keeps else None,
        )
        with contextlib.closing(grading):
            for grade in grading:
                graded.append(with_basis(grade))
                on_graded(len(graded))
    return _in_order(
        samples, former, graded, observed, report, lambda grades: grouped(by_id.questions, grades, options)
    )


def _in_order(
    samples: _Samples,
    former: _Former | None,
    new: Sequence[Grade],
    observed: Observed,
    report: JournalReport,
    group: Callable[[Iterable[tuple[int, Grade]]], Groups],
) -> Graded:
    """The grades by question and sample index, with the signs and the checksum of the current reply.

    new: new grades in the order in which their samples were added. report: problems with the journal's lines. group:
    groups their votes.
    """
    marks = np.frombuffer(samples.mark, dtype=np.int64)
    order = np.argsort(marks, kind="stable")
    rows = np.frombuffer(samples.row, dtype=np.uint32)[order].astype(np.int64)
    former_grades: Sequence[Grade] = () if former is None else former.grades
    question = (marks[order] >> _INDEX_BITS).astype(np.uint32)

    def sorted_grades() -> Iterator[Grade]:
        for i in order:
            source = samples.source[i]
            yield new[-1 - source] if source < 0 else former_grades[source]

    several = (question[1:] == question[:-1]).any()
    groups = group(zip(question.tolist(), sorted_grades(), strict=True)) if several else {}

    def with_signs() -> Iterator[Grade]:
        for number, row, grade in zip(question.tolist(), rows, sorted_grades(), strict=True):
            shown, checksum = observed.anomalies(row), observed.checksums[row]
            vote = groups.get((number, grade.vote or ""), grade.vote)
            # An earlier version may have found different signs.
            if (grade.anomalies, grade.reply_checksum, grade.vote) != (shown, checksum, vote):
                grade = msgspec.structs.replace(grade, anomalies=shown, reply_checksum=checksum, vote=vote)
            yield grade

    return Graded(
        grades=[*with_signs()],
        question=question,
        index=marks[order].astype(np.uint32),  # keeps the lower 32 bits
        rows=rows,
        observed=observed,
        report=report,
        changes=() if former is None else former.changes,
    )


def grade_basis(question: Question) -> str:
    """Short checksum of the parts of a question that affect its grades: references, kind, rules, choices."""
    rules = msgspec.to_builtins(question.rules)
    return digest([question.references, question.kind, rules, question.choices, *question.graded_by_turn])[:12]


def first_few(lines: Sequence[str]) -> str:
    """The first of these descriptions of lines, and how many more there are."""
    more = f" and {len(lines) - MAX_NAMED} more" if len(lines) > MAX_NAMED else ""
    return f"{', '.join(lines[:MAX_NAMED])}{more}"


def journal_warnings(folder: BenchmarkFolder, report: JournalReport) -> list[str]:
    """Warnings about damaged or duplicate records in the journal."""
    sentences = []
    if report.damaged:
        lines = first_few([f"line {d.number} ({d.reason})" for d in report.damaged])
        sentences.append(
            f"{folder.samples.name}: damaged, so not counted: {lines}; to sample them again, repeat the run command"
        )
    if report.n_duplicates:
        sentences.append(f"{report.n_duplicates} duplicate records of samples were ignored; only the first one is used")
    return [*sentences, *report.warnings]
