"""Counts grades by question: which samples a score covers, which are missing, and the votes for each answer.

Grades stay packed. The counted facts are in one array with a row of 53 bytes per sample (`_ROW`), sorted by question
and sample index; a `QuestionTally` reads its part of the array. There are three cases:

| planned samples missing | the score covers |
| --- | --- |
| none | all |
| up to `MAX_MISSING_SHARE`, or no round is complete | all present samples ("partial") |
| more | only complete rounds, each with one sample of every question |
"""

from __future__ import annotations

import math
import struct
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.errors import UsageError
from harness.core.records import Grade, NearMiss, Question, VerdictName
from harness.runs.missing import n_planned
from harness.scoring.anomalies import Copies, copies_among
from harness.scoring.pass_at_k import VoteGroup

MAX_MISSING_SHARE = 0.01
"""An unfinished run with more than this fraction of its samples missing is scored only on its complete rounds."""

_MAX_TOKENS = 1 << 53
"""Largest number of tokens that is counted; larger numbers count as this one. Above it, a float is not exact."""

_MAX_UINT32 = (1 << 32) - 1
"""Sample indices are below this number, and parts of an answer beyond it are not counted."""

_FIELDS = {
    "question": "I",
    "index": "I",
    "position": "I",
    "kind": "I",
    "signs": "B",
    "vote": "q",
    "tokens": "d",
    "share": "d",
    "parts": "I",
    "text": "q",
}
"""The facts of a grade that a score counts. question, kind: indices of its question and `GradeKind`. position: position
among all grades. vote: hash of the vote. tokens: NaN if not reported. share: fraction of the answer that is right.
text: the reply's checksum, -1 if unknown.
"""

_ROW = np.dtype([(name, f"<{code}") for name, code in _FIELDS.items()])

CORRECT, UNDECIDED, _TRUNCATED, _VOTES, _STATES_PARTS, _MAYBE_CUT, _HAS_POINTS, _NO_ANSWER = (1 << n for n in range(8))

_MASKS = np.array(
    [
        [
            *(signs & bit > 0 for bit in (CORRECT, UNDECIDED, _TRUNCATED, _MAYBE_CUT)),
            signs & (CORRECT | _TRUNCATED) == CORRECT,
            signs & _NO_ANSWER > 0,
            signs & (_STATES_PARTS | _HAS_POINTS) > 0,
        ]
        for signs in range(256)
    ],
    dtype=np.int64,
)
"""For each value of `signs`: correct, undecided, truncated, possibly truncated, correct and not truncated, without an
answer, has parts or points.
"""


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """The grades of all questions of a tally, counted in columns; each `QuestionTally` reads its part of them.

    rows: their facts (`_ROW`), sorted by question and sample index. starts: (Q + 1,), where the rows of each question
    start. planned, independent, parts, shares, squares: (Q,), as in `QuestionTally`; independent None: all samples are
    independent. sums: (Q, 7), sums of the columns of `_MASKS`. lowest: with points, the smallest share of a sample or 0
    if that is smaller; otherwise None.
    """

    grades: Sequence[Grade]
    rows: NDArray[Any]
    positions: array[int]
    starts: array[int]
    planned: NDArray[np.int64]
    independent: NDArray[np.float64] | None
    sums: NDArray[np.int32]
    parts: NDArray[np.int64]
    shares: NDArray[np.float64]
    squares: NDArray[np.float64]
    lowest: float | None

    @classmethod
    def of(
        cls,
        grades: Sequence[Grade],
        rows: NDArray[Any],
        planned: NDArray[np.int64],
        independent: NDArray[np.float64] | None,
    ) -> _Counted:
        """Count the rows of all questions; `planned` has one entry per question."""
        n, question, signs = len(planned), rows["question"], rows["signs"]
        sums = np.stack([np.bincount(question, mask[signs], n).astype(np.int32) for mask in _MASKS.T], axis=-1)
        parts, shares = np.zeros(n, dtype=np.int64), sums[:, 0].astype(float)
        squares = shares
        if sums[:, -1].any():
            np.maximum.at(parts, question, rows["parts"])
            shares, squares = (np.bincount(question, rows["share"] ** power, n) for power in (1, 2))
        starts = array("q", np.concatenate([[0], np.cumsum(np.bincount(question, minlength=n))]).tobytes())
        positions = array("I", rows["position"].tobytes())
        has_points = bool((signs & _HAS_POINTS).any())
        lowest = min(0.0, float(rows["share"].min())) if has_points else None
        return cls(grades, rows, positions, starts, planned, independent, sums, parts, shares, squares, lowest)

    def by_question(self, questions: Sequence[Question]) -> tuple[QuestionTally, ...]:
        """The tally of each question. questions: in the order of the columns."""
        return tuple(QuestionTally(question, self, number) for number, question in enumerate(questions))


@dataclass(frozen=True, slots=True, eq=False)
class QuestionTally:
    """The counts of one question's samples that a score needs. counted: contains them, at the index `number`."""

    question: Question
    counted: _Counted
    number: int

    @property
    def planned(self) -> int:
        """Number of samples that the score should cover."""
        return int(self.counted.planned[self.number])

    @property
    def independent(self) -> int:
        """Number of independent samples that the present samples count for; fewer if some repeat another's text."""
        return self.n if self.counted.independent is None else int(self.counted.independent[self.number])

    @property
    def has_copies(self) -> bool:
        """Whether the benchmark's samples repeat each other's texts more often than by chance."""
        return self.counted.independent is not None

    @property
    def _span(self) -> tuple[int, int]:
        return self.counted.starts[self.number], self.counted.starts[self.number + 1]

    @property
    def grades(self) -> Sequence[Grade]:
        """The grades of the present samples, by sample index."""
        return [self.counted.grades[position] for position in self.counted.positions[slice(*self._span)]]

    @property
    def facts(self) -> NDArray[Any]:
        """The rows (`_ROW`) of the grades, in their order."""
        return self.counted.rows[slice(*self._span)]

    @property
    def correct(self) -> int:
        """Number of samples graded correct."""
        return int(self.counted.sums[self.number, 0])

    @property
    def undecided(self) -> int:
        """Number of samples that the grader could not decide; the accuracy counts them as wrong, the bounds as open."""
        return int(self.counted.sums[self.number, 1])

    @property
    def n_cut(self) -> int | None:
        """Number of samples truncated by max_tokens; None if this is not recorded for every sample."""
        return None if self.counted.sums[self.number, 3] else int(self.counted.sums[self.number, 2])

    @property
    def unanswered(self) -> int:
        """Number of samples without an answer."""
        return int(self.counted.sums[self.number, 5])

    @property
    def uncut(self) -> int:
        """Number of samples not truncated by max_tokens."""
        return self.n - int(self.counted.sums[self.number, 2])

    @property
    def parts(self) -> int:
        """Number of parts of the answer; 0 if no grade reports them."""
        return int(self.counted.parts[self.number])

    @property
    def shares(self) -> float:
        """The sum over the samples of `Grade.share_right`."""
        return float(self.counted.shares[self.number])

    @property
    def squares(self) -> float:
        """The sum over the samples of the square of `Grade.share_right`."""
        return float(self.counted.squares[self.number])

    @property
    def lowest(self) -> float | None:
        """The smallest share of points of any sample in the benchmark, but at most 0; None without points."""
        return self.counted.lowest

    @property
    def right(self) -> float:
        """What the accuracy counts: the sum of the shares of points, or without points, the number of correct
        samples.
        """
        return self.correct if self.lowest is None else self.shares

    @property
    def uncut_right(self) -> float:
        """The shares of points or the correct samples, as in `right`, among the samples not truncated by max_tokens."""
        correct = int(self.counted.sums[self.number, 4])
        return correct if self.lowest is None else float(self._uncut_shares.sum())

    @property
    def uncut_squares(self) -> float:
        """As `squares`, for the samples not truncated by max_tokens."""
        return float((self._uncut_shares**2).sum())

    @property
    def _uncut_shares(self) -> NDArray[np.float64]:
        facts = self.facts
        return facts["share"][facts["signs"] & _TRUNCATED == 0]  # type: ignore[no-any-return]

    @property
    def n(self) -> int:
        """Number of present samples."""
        return self.counted.starts[self.number + 1] - self.counted.starts[self.number]

    def votes(self) -> tuple[list[VoteGroup], int]:
        """Return (groups of equal votes, number of samples that do not vote)."""
        sizes: Counter[int] = Counter()
        correct: Counter[int] = Counter()
        facts = self.facts
        voting = facts[facts["signs"] & _VOTES != 0]
        for vote, signs in zip(voting["vote"].tolist(), voting["signs"].tolist(), strict=True):
            sizes[vote] += 1
            correct[vote] += signs & CORRECT
        return [VoteGroup(size, correct[vote]) for vote, size in sizes.items()], self.n - len(voting)


@dataclass(frozen=True, slots=True)
class Tallies:
    """The samples that one score covers.

    questions: in the given order. stored: the same with all present samples, if the score covers only complete rounds.
    planned: number of samples per question (None: the stored samples are the plan). covered: number of samples per
    question that the score covers. missing: number of planned samples without a grade. partial: whether samples are
    missing among the covered ones. n_left_out: number of grades of unplanned samples, which do not count. kinds: number
    of samples of each kind. columns: the covered samples. copies: equal replies among them; None if no grade has its
    reply's checksum.
    """

    questions: tuple[QuestionTally, ...]
    stored: tuple[QuestionTally, ...]
    planned: float | None
    covered: float
    missing: int
    partial: bool
    n_left_out: int
    kinds: Mapping[GradeKind, int]
    columns: SampleColumns
    copies: Copies | None


def tally(
    questions: Sequence[Question], grades: Iterable[Grade], samples_per_question: float | Mapping[str, int] | None
) -> Tallies:
    """Count the right, wrong and missing samples of each question. If a sample has several grades, the first counts.

    Grades of other questions are left out, as are grades of unplanned samples. Without a plan, the plan is the stored
    samples and those known to be missing (a mapping: question id → number of missing samples). A question without any
    samples is assumed to have the most common planned number (the largest in case of a tie). If many samples are
    missing, only complete rounds are scored, because samples that finish first tend to be short and right. Raises
    `UsageError` if there are no questions.
    """
    if not questions:
        raise UsageError("there are no questions to score")
    plan = samples_per_question if isinstance(samples_per_question, int | float) else None
    held = grades if isinstance(grades, Sequence) else [*grades]
    most = np.array([_MAX_UINT32 if plan is None else n_planned(each.question_id, plan) for each in questions])
    arrived, kinds = _rows(_located(questions, held, most.tolist()))
    n_left_out, rows = len(held) - len(arrived), _in_order(arrived)
    del arrived
    missing, stored = 0 if plan is None else int(most.sum()) - len(rows), tuple[QuestionTally, ...]()
    rounds: NDArray[np.integer] = np.zeros(0, dtype=np.int64)
    if missing and missing > MAX_MISSING_SHARE * most.sum():
        rounds = _complete_rounds(*np.unique(rows["index"], return_counts=True), most)
        if len(rounds):
            stored = _Counted.of(held, rows, most, None).by_question(questions)
            rows = rows[np.isin(rows["index"], rounds)]
            most = np.searchsorted(rounds, most)  # the complete rounds within the plan of each question
    n = np.bincount(rows["question"], minlength=len(questions))
    of_kinds = np.bincount(rows["kind"], minlength=len(kinds))
    copies, independent = copies_among(rows["question"], rows["text"], len(questions)) or (None, n.astype(float))
    if plan is None:
        # A question without samples is assumed to have the most common number (the largest in case of a tie).
        lacking = samples_per_question if isinstance(samples_per_question, Mapping) else {}
        most = n + np.array([lacking.get(question.question_id, 0) for question in questions])
        n_questions_with = np.bincount(most[most > 0], minlength=1)
        usual = len(n_questions_with) - 1 - int(n_questions_with[::-1].argmax())
        most = np.where(most > 0, most, usual)
        missing = int(most.sum()) - len(rows)
    many = copies is not None and copies.is_excessive
    counted = _Counted.of(held, rows, most, independent if many else None)
    return Tallies(
        questions=counted.by_question(questions),
        stored=stored,
        planned=plan,
        covered=plan if plan is not None and not len(rounds) else int(most.max()),
        missing=missing,
        partial=bool(missing) and not len(rounds),
        n_left_out=n_left_out,
        kinds={kind: int(of_kinds[number]) for kind, number in kinds.items() if of_kinds[number]},
        columns=SampleColumns(
            question=rows["question"],
            position=rows["position"],
            tokens=rows["tokens"],
            correct=(rows["signs"] & CORRECT).astype(bool),
            right=rows["share"] if counted.lowest is not None else (rows["signs"] & CORRECT).astype(float),
        ),
        copies=copies,
    )


def _located(
    questions: Sequence[Question], grades: Sequence[Grade], most: Sequence[int]
) -> Iterator[tuple[int, int, Grade]]:
    """Yield (index of its question, its position, the grade) for each planned grade. most: planned samples per
    question.
    """
    numbers = {question.question_id: number for number, question in enumerate(questions)}
    for position, grade in enumerate(grades):
        number = numbers.get(grade.question_id)
        if number is not None and 0 <= grade.sample_index < most[number]:
            yield number, position, grade


def _rows(located: Iterable[tuple[int, int, Grade]]) -> tuple[NDArray[Any], dict[GradeKind, int]]:
    """The facts of the grades, in order, and the index of each kind. located: (question, position, grade)."""
    kinds, packed, pack = dict[GradeKind, int](), bytearray(), struct.Struct("<" + "".join(_FIELDS.values())).pack
    for number, position, grade in located:
        kind = GradeKind(grade.verdict, grade.rule, grade.grader, grade.unextracted, grade.near_miss)
        signs = {"correct": CORRECT, "undecided": UNDECIDED, "no_answer": _NO_ANSWER}.get(grade.verdict, 0)
        signs |= _MAYBE_CUT if grade.truncated is None else _TRUNCATED * grade.truncated
        signs |= _VOTES * (grade.vote is not None and grade.verdict != "no_answer")
        signs |= _STATES_PARTS * (grade.parts is not msgspec.UNSET)
        signs |= _HAS_POINTS * (grade.points is not msgspec.UNSET)
        # A score compares votes only within a question: among a million votes, two 64-bit hashes are equal by chance
        # once in 10⁷ scores, and the key of Python's hash is random in each process, so no reply can target it.
        packed += pack(
            number,
            grade.sample_index,
            position,
            kinds.setdefault(kind, len(kinds)),
            signs,
            hash(grade.vote),
            math.nan if grade.completion_tokens is None else min(grade.completion_tokens, _MAX_TOKENS),
            grade.share_right,
            0 if grade.parts is msgspec.UNSET else min(grade.parts[1], _MAX_UINT32),
            -1 if grade.reply_checksum is None else grade.reply_checksum & sys.maxsize,
        )
    return np.frombuffer(packed, _ROW), kinds


def _in_order(rows: NDArray[Any]) -> NDArray[Any]:
    """The rows by question and sample index, with only the first row of each sample."""
    question, index = rows["question"], rows["index"]
    if ((question[1:] > question[:-1]) | (question[1:] == question[:-1]) & (index[1:] > index[:-1])).all():
        return rows
    rows = rows[np.lexsort((index, question))]  # stable: grades of the same sample stay in order
    again = np.zeros(len(rows), dtype=bool)
    again[1:] = (rows["question"][1:] == rows["question"][:-1]) & (rows["index"][1:] == rows["index"][:-1])
    return rows[~again] if again.any() else rows


def _complete_rounds(
    indices: NDArray[np.integer], times: NDArray[np.int64], most: NDArray[np.int64]
) -> NDArray[np.integer]:
    """The indices of the complete rounds, in which no question's sample is missing.

    Empty if any question has no sample in these rounds. A question with at most i planned samples needs no sample with
    index i. indices, times: the present sample indices, and the number of samples with each index. most: planned
    samples per question.
    """
    rounds = indices[times == np.array([(most > number).sum() for number in indices.tolist()], dtype=np.int64)]
    holds_all = bool(len(rounds)) and bool(rounds[0] < most.min())
    return np.asarray(rounds if holds_all else rounds[:0])


_NO_METADATA: dict[str, Any] = {}
"""Shared metadata of all questions that have none, since every empty dictionary takes 64 bytes."""


def slim(question: Question, *, row: bool = False) -> Question:
    """A copy of the question with only its id, kind and metadata, since its texts would take up most of the memory.

    row: also keep the row digest, which pairs the question with the same question in another run.
    """
    return Question(
        benchmark=sys.intern(question.benchmark),
        question_id=question.question_id,
        references=(),
        kind=question.kind,
        metadata=question.metadata or _NO_METADATA,
        row_digest=question.row_digest if row else "",
        prompt_digest="",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleColumns:
    """The samples that a score covers, in columns, question by question.

    question: index of each sample's question. position: position of its grade among all tallied grades. tokens:
    completion tokens, NaN if the server reported none. right: share of each sample, as in `QuestionTally.right`.
    """

    question: NDArray[np.uint32]
    position: NDArray[np.uint32]
    tokens: NDArray[np.float64]
    correct: NDArray[np.bool_]
    right: NDArray[np.float64]

    def in_order(self, questions: Sequence[int]) -> SampleColumns:
        """The samples with renumbered questions. questions: (Q,), the current indices in the new order."""
        numbers = np.empty(len(questions), dtype=np.uint32)
        numbers[questions] = np.arange(len(questions))
        return replace(self, question=numbers[self.question])


class GradeKind(NamedTuple):
    """The facts that define the kind of a grade, by which a score counts its samples."""

    verdict: VerdictName
    rule: str
    grader: str
    unextracted: bool
    near_miss: NearMiss | None
