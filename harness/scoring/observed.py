"""Reads a journal for a score, each sample once and in little memory: its numbers into columns, its grades in order.

**Numbers** beside the grades (times, tokens, flags) stand in columns, without the samples' texts. `Observed.observe`
gives each sample the next row number; the columns are read by arrays of row numbers:

    row     first_token   completion_tokens   …   bits (kernel clock, reasoning sent, salvaged …)
    0       0.31          1204                    0 1 0
    1       0.28          NaN (not stated)        0 1 1

A number takes eight bytes; a column that no sample states takes none, and one beyond tens of MB lies in a file without
a name (`core.packed`).

**Grades** come in the order of questions and sample indices, whatever the order of the journal's lines. A sample is
known by its mark, `question number << 32 | sample index`, so that sorting marks sorts samples. The journal is read
once; each sample goes one of two ways:

    a former grade with this mark is still valid (`_Former`)  →  reused: the position of the former grade
    otherwise                                                 →  new:    graded by the pool of worker processes

Grades stay packed. At the end both lists of marks are sorted together, and the grades are read out in that order.
"""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.codec import digest
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.core.packed import Packed, Picked, Spilled
from harness.core.records import FROM_FILE, Anomaly, Grade, Question, Sample
from harness.grading import verifier
from harness.grading.processes import pool
from harness.runs import BenchmarkFolder, JournalReport, grades, read_samples
from harness.scoring.anomalies import Texts, signs_of

Rows = NDArray[np.int64]
"""Row numbers into `Observed`, in order of arrival."""

_SIGNS: tuple[Anomaly, ...] = get_args(Anomaly)

_SIGNS_OF_BITS = [tuple(sign for bit, sign in enumerate(_SIGNS) if bits >> bit & 1) for bits in range(1 << len(_SIGNS))]
"""The signs of a broken reply by bit mask: for each mask that a row can have, the signs whose bits are set."""

_MAX_NUMBER = float(1 << 53)
"""Largest number that is stored; larger ones count as this one.

No server means them, and above it a float is not exact.
"""

MAX_NAME_CHARS = 120
"""Largest number of characters of a file's name in a warning."""

_BUFFERED = 8192
"""Recent numbers that a column holds in memory before it moves them to its store."""


class Column:
    """A number for each row, NaN where the row states none. Rows after the last that states one take no memory."""

    __slots__ = ("_aside", "_n", "_recent")

    def __init__(self) -> None:
        self._aside = Spilled()
        self._recent = array("d")
        self._n = 0

    @property
    def stated(self) -> bool:
        """Whether any row states a number."""
        return self._n > 0

    def put(self, row: int, value: float | None) -> None:
        """Set the value of `row`; rows must come in ascending order. None leaves the row unset."""
        if value is not None:
            if self._n < row:
                self._recent.frombytes(np.full(row - self._n, np.nan).tobytes())
            self._recent.append(min(value, _MAX_NUMBER))
            self._n = row + 1
            if len(self._recent) >= _BUFFERED:
                self._put_aside()

    def _put_aside(self) -> None:
        """Move the recent numbers to the store."""
        self._aside.append(self._recent.tobytes())
        self._recent = array("d")

    def of(self, rows: Rows) -> NDArray[np.float64]:
        """The number of each row, (len(rows),); NaN where the row states none."""
        if self._recent:
            self._put_aside()
        values = np.frombuffer(self._aside.read(0, len(self._aside)))
        if len(rows) and len(values) > int(rows.max()):
            return values[rows]
        numbers = np.full(len(rows), np.nan)
        there = rows < len(values)
        numbers[there] = values[rows[there]]
        return numbers


class BitRows:
    """Up to eight bits for each row."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values = bytearray()

    def put(self, bits: Sequence[bool]) -> None:
        """Set the bits of the next row."""
        self._values.append(sum(1 << position for position, bit in enumerate(bits) if bit))

    def __getitem__(self, row: int) -> int:
        return self._values[row]

    def of(self, rows: Rows, bit: int) -> NDArray[np.bool_]:
        """Whether the bit is set, for each row: (len(rows),)."""
        return (np.frombuffer(self._values, dtype=np.uint8)[rows] >> bit & 1).astype(bool)


class Observed:
    """Facts of a benchmark's samples in columns, one row for each sample. No sample may be given twice."""

    def __init__(self) -> None:
        self.n = 0
        self.endpoints: dict[str, int] = {}
        """Number of each endpoint by URL, in the order of their first samples."""
        self.started, self.total = Column(), Column()
        self.first_token, self.last_token = Column(), Column()
        self.gap_p50, self.gap_p99, self.lag = Column(), Column(), Column()
        self.attempts = Column()
        self.prompt_tokens, self.completion_tokens, self.reasoning_tokens = Column(), Column(), Column()
        self._endpoint = array("I")
        self._facts, self._signs = BitRows(), BitRows()
        self.texts = Texts()

    def observe(self, sample: Sample) -> int:
        """Store the numbers of `sample` in the columns; return its row number, the next one."""
        row, timing, usage = self.n, sample.timing, sample.usage
        self.n += 1
        self._endpoint.append(self.endpoints.setdefault(sample.endpoint, len(self.endpoints)))
        self.started.put(row, timing.started)
        self.total.put(row, timing.total)
        self.first_token.put(row, timing.first_token)
        self.last_token.put(row, timing.last_token)
        self.gap_p50.put(row, timing.gap_p50)
        self.gap_p99.put(row, timing.gap_p99)
        self.lag.put(row, timing.lag)
        # Nearly all samples have one attempt, and a column without a number takes no memory.
        self.attempts.put(row, sample.attempts if sample.attempts > 1 else None)
        self.prompt_tokens.put(row, usage.prompt_tokens)
        self.completion_tokens.put(row, usage.completion_tokens)
        self.reasoning_tokens.put(row, usage.reasoning_tokens)
        by_kernel = timing.clock == "kernel"
        retokenised = any(not seam.exact for seam in sample.salvaged_at)
        self._facts.put((by_kernel, bool(sample.reasoning), bool(sample.salvaged_at), retokenised, sample.foreign))
        self.texts.add(sample)
        shown = signs_of(sample)
        self._signs.put([sign in shown for sign in _SIGNS])
        return row

    def endpoint(self, rows: Rows) -> NDArray[np.uint32]:
        """The number of each row's endpoint, (len(rows),)."""
        return np.frombuffer(self._endpoint, dtype=np.uint32)[rows]

    def stamped_by_kernel(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether the kernel stamped the times of receipt."""
        return self._facts.of(rows, 0)

    def reasoned(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether the server sent reasoning."""
        return self._facts.of(rows, 1)

    def salvaged(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether the sample was continued after an interruption."""
        return self._facts.of(rows, 2)

    def retokenised(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether a continuation had to turn text into tokens again, which may have changed the tokens."""
        return self._facts.of(rows, 3)

    def foreign(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether another tool made the sample."""
        return self._facts.of(rows, 4)

    def shown(self, rows: Rows) -> dict[Anomaly, NDArray[np.bool_]]:
        """Return for each sign of something wrong whether each row shows it, (len(rows),)."""
        return {sign: self._signs.of(rows, bit) for bit, sign in enumerate(_SIGNS)}

    def anomalies(self, row: int) -> tuple[Anomaly, ...]:
        """The signs that the sample of this row shows."""
        return _SIGNS_OF_BITS[self._signs[row]]


def takeover_warnings(observed: Observed, planned: Rows) -> list[str]:
    """A warning for each file of another tool from which this run took over samples. planned: rows of these samples."""
    counts = np.bincount(observed.endpoint(planned), minlength=len(observed.endpoints)).tolist()
    files = {url: counts[number] for url, number in observed.endpoints.items() if url.startswith(FROM_FILE)}
    shown = {visible(url.removeprefix(FROM_FILE), MAX_NAME_CHARS): n for url, n in sorted(files.items())}
    return [
        f"{n} sample{' was' if n == 1 else 's were'} taken over from another tool's file ({name}): "
        f"{'its' if n == 1 else 'their'} settings are unknown"
        for name, n in shown.items()
        if n
    ]


def salvage_warnings(observed: Observed, rows: Rows, *, counted: bool) -> list[str]:
    """Return a warning if samples were continued after an interruption; else an empty list.

    If the score counts such samples, it warns only if some were retokenised, because these may differ from
    uninterrupted samples. rows: the planned samples. counted: whether the score counts continued samples.
    """
    n_salvaged = int(observed.salvaged(rows).sum())
    if not n_salvaged:
        return []
    n_retokenised = int(observed.retokenised(rows).sum())
    how = "over the same tokens"
    if n_retokenised:
        how = f"{n_retokenised} of them after their text was turned into tokens again"
    warning = f"{n_salvaged} of {count_noun(len(rows), 'sample')} were continued after an interruption, {how}"
    if not counted:
        return [f"{warning}; the score leaves them out"]
    return [f"{warning}; a score can leave them out"] if n_retokenised else []


# ---- grades in order

_INDEX_BITS = 32
"""Bits of the mark that hold the sample index.

Samples with a larger or negative index are ignored, because no plan contains them.
"""

_OPEN_BLOCKS = 2048
"""Blocks of fresh grades that stay unpacked while grades are read in order.

A journal visits the questions in turn, so the grades of one question lie in as many blocks as it has samples.
"""


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
    """Two arrays of equal length: the mark of each sample, and its row in `Observed`, below 2³².

    A mark is a number by which samples sort (see `_mark`).
    """

    def __init__(self) -> None:
        self.mark, self.row = array("q"), array("I")

    def add(self, mark: int, row: int) -> None:
        self.mark.append(mark)
        self.row.append(row)

    def __len__(self) -> int:
        return len(self.mark)


class _Former:
    """The grades of an earlier scoring, or of an interrupted one, that are still valid.

    A grade is valid if the grader and the question's `basis` are unchanged, unless a verifier ran into a deadline that
    is longer now.
    """

    def __init__(
        self, folder: BenchmarkFolder, by_id: ById, bases: Sequence[str], sandbox: str | None, deadline_s: float
    ) -> None:
        names = pool.grader_names(by_id.questions, sandbox)
        graders = [names[question.rules.grader] for question in by_id.questions]
        self.grades: Packed[Grade] = Packed(Grade)
        marks = array("q")
        for grade in grades.read_stored(folder):
            number = by_id.numbers.get(grade.question_id)
            if number is None or (grade.grader, grade.basis) != (graders[number], bases[number]):
                continue
            stopped_after = verifier.seconds_of(grade.rule)
            if stopped_after is None or deadline_s <= stopped_after:
                marks.append(_mark(number, grade.sample_index))
                self.grades.append(grade)
        # Stable, so that of several grades of a sample the last stays last.
        order = np.argsort(np.frombuffer(marks, dtype=np.int64), kind="stable")
        self._marks = array("q", np.frombuffer(marks, dtype=np.int64)[order].tobytes())
        self._positions = array("q", order.tobytes())

    def __len__(self) -> int:
        """The number of samples with such a grade."""
        return len(np.unique(np.frombuffer(self._marks, dtype=np.int64)))

    def position(self, mark: int) -> int | None:
        """The position in `grades` of the sample's grade, the last if there are several; None if there is none.

        mark: the sample's, from `_mark`.
        """
        i = bisect_right(self._marks, mark) - 1
        return self._positions[i] if i >= 0 and self._marks[i] == mark else None


def _mark(question_number: int, sample_index: int) -> int:
    """A number by which samples sort: by question, then by index."""
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

    fresh: reuse no earlier grade. span: bytes [start, stop) of the journal; None = all. sandbox: where programs run.
    on_graded: called with the number of new grades so far. Raises `StoreError`; `UsageError` for an untrusted verifier.
    """
    interned: dict[str, str] = {}  # Equal digests share one object: a large set repeats a few references.
    bases = [interned.setdefault(text, text) for text in map(basis, by_id.questions)]
    ids = [*by_id]
    former = None
    if not fresh and (folder.grades.exists() or folder.partial_grades.exists()):
        former = _Former(folder, by_id, bases, sandbox, deadline_s)
    reader, observed = read_samples(folder, span=span), Observed()
    reused, new = _Marks(), _Marks()
    former_positions = array("q")  # Positions in `former.grades` of the samples in `reused`.

    def ungraded() -> Iterator[Sample]:  # yields the samples without a usable former grade; notes every sample
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

    def with_basis(grade: Grade) -> Grade:
        number = by_id.numbers[grade.question_id]
        return msgspec.structs.replace(grade, question_id=ids[number], basis=bases[number])

    graded: Packed[Grade] = Packed(Grade, open_blocks=_OPEN_BLOCKS)
    # Not kept: parts of a journal, which machines of a cluster grade side by side; and grades that the next call with
    # the same options would not reuse.
    keeps = span is None and not fresh
    n_stored = 0 if former is None else len(former)
    with grades.PartialGrades(folder, n_stored, keeps=keeps) as partial:
        grading = pool.grade_all(
            by_id, ungraded(), workers=workers, deadline_s=deadline_s, sandbox=sandbox,
            keep=(lambda early: partial.append([*map(with_basis, early)])) if keeps else None,
        )  # fmt: skip
        with contextlib.closing(grading):
            for grade in grading:
                graded.append(with_basis(grade))
                on_graded(len(graded))
    former_grades = Picked(former.grades if former is not None else graded, former_positions)
    return _in_order(reused, former_grades, new, graded, observed, reader.report)


def _in_order(
    reused: _Marks,
    former: Sequence[Grade],
    new: _Marks,
    graded: Sequence[Grade],
    observed: Observed,
    report: JournalReport,
) -> Graded:
    """Both kinds of grades in the order of questions and sample indices.

    former: the grades of the samples in `reused`. graded: those of the samples in `new`.
    """
    # `order` is over both lists: a number below `len(reused)` is a place in `reused`, any other a place in `new`.
    marks = np.frombuffer(reused.mark + new.mark if reused else new.mark, dtype=np.int64)
    order = np.argsort(marks, kind="stable")
    question = (marks[order] >> _INDEX_BITS).astype(np.uint32)
    index = marks[order].astype(np.uint32)  # keeps the lower 32 bits
    rows = np.frombuffer(reused.row + new.row if reused else new.row, dtype=np.uint32)[order].astype(np.int64)

    def in_order() -> Iterator[Grade]:  # yields all grades, former and new, by question and sample
        for i in range(len(order)):
            source, row = int(order[i]), int(rows[i])
            grade = former[source] if source < len(reused) else graded[source - len(reused)]
            shown = observed.anomalies(row)  # An earlier version may have found other signs.
            yield grade if grade.anomalies == shown else msgspec.structs.replace(grade, anomalies=shown)

    return Graded(
        grades=Packed(Grade, in_order()),
        question=question,
        index=index,
        rows=rows,
        observed=observed,
        report=report,
    )


def basis(question: Question) -> str:
    """Short checksum of the parts of a question on which its grades depend: references, kind, rules, choices."""
    rules = msgspec.to_builtins(question.rules)
    return digest([question.references, question.kind, rules, question.choices])[:12]
