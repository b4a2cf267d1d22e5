"""Grades counted by question: which samples a score covers, which are missing, and the votes for each answer.

Grades stay packed; a `QuestionTally` holds the positions of its grades. Three cases:

| planned samples missing | the score covers |
| --- | --- |
| none | all |
| up to `MAX_MISSING_SHARE`, or no round is complete | all that are there ("partial") |
| more | the complete rounds only: one sample of every question each |
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.errors import UsageError
from harness.core.inert import quoted
from harness.core.packed import Packed, Picked
from harness.core.records import Grade, Key, NearMiss, Question, Verdict
from harness.runs.record import Plan
from harness.scoring.estimators import VoteGroup

MAX_MISSING_SHARE = 0.01
"""An unfinished run that misses more than this fraction of its samples is scored on its complete rounds only."""

_NO_METADATA: dict[str, Any] = {}

_MAX_TOKENS = 1 << 53
"""Largest number of tokens that is counted; larger ones count as this one. Above it a float is not exact."""

MAX_NAMED_KEYS = 5
"""Largest number of keys that a warning names; the others are counted."""


@dataclass(frozen=True, slots=True)
class QuestionTally:
    """The samples of one question that a score covers. planned: how many the score should cover. correct: how many are
    graded correct. undecided: samples on which the grader could not decide; the accuracy counts them as wrong, the
    bounds as open. independent: how many independent samples the present ones are worth if some are copies (`copies`);
    None = all. parts: parts that the answer has, 0 where no grade states them. shares, squares: sum over the samples of
    the fraction of the parts that are right, and of its square; a grade without parts counts 0.
    """

    question: Question
    grades: Sequence[Grade]
    planned: int
    independent: int | None = None
    correct: int = field(init=False)
    undecided: int = field(init=False)
    parts: int = field(init=False, default=0)
    shares: float = field(init=False, default=0.0)
    squares: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        verdicts: list[Verdict] = []
        parts: list[tuple[int, int]] = []
        for grade in self.grades:
            verdicts.append(grade.verdict)
            if grade.parts is not msgspec.UNSET:
                parts.append(grade.parts)
        object.__setattr__(self, "correct", verdicts.count("correct"))
        object.__setattr__(self, "undecided", verdicts.count("undecided"))
        if parts:
            shares = [min(right / total, 1.0) for right, total in parts]
            object.__setattr__(self, "parts", max(total for _, total in parts))
            object.__setattr__(self, "shares", math.fsum(shares))
            object.__setattr__(self, "squares", math.fsum(share**2 for share in shares))

    @property
    def n(self) -> int:
        """The number of samples present."""
        return len(self.grades)

    @property
    def rate(self) -> float | None:
        """Fraction correct."""
        return self.correct / self.n if self.n else None

    @property
    def cluster(self) -> str:
        """The label of the question's cluster, a group of questions that are not independent.

        It is the value of the card's `cluster_key`, or the question of which this one is a reordering or a twin, or
        the question's own id.
        """
        metadata = self.question.metadata
        # Any card may have a column named "original"; only that of a twin groups questions.
        names = ("cluster", "same_as", "original") if "twin_of" in metadata else ("cluster", "same_as")
        return str(next((metadata[name] for name in names if name in metadata), self.question.question_id))

    def votes(self) -> tuple[list[VoteGroup], int]:
        """(groups of equal votes, samples that do not vote)."""
        sizes: Counter[str] = Counter()
        correct: Counter[str] = Counter()
        for grade in self.grades:
            if grade.vote is not None and grade.verdict != "no_answer":
                sizes[grade.vote] += 1
                correct[grade.vote] += grade.verdict == "correct"
        return [VoteGroup(size, correct[vote]) for vote, size in sizes.items()], self.n - sizes.total()


@dataclass(frozen=True, slots=True)
class Tallies:
    """The samples that one score covers.

    questions: in the order asked. planned: largest number of samples planned of a question (None: the stored samples
    are the plan). allocated: a former run decided the numbers. covered: samples of each question that the score covers.
    missing: planned samples without a grade. partial: samples are missing within the covered ones. warnings: sentences
    on grades that do not count.
    """

    questions: tuple[QuestionTally, ...]
    planned: int | None
    allocated: bool
    covered: int
    missing: int
    partial: bool
    warnings: tuple[str, ...]


def tally(
    questions: Sequence[Question],
    grades: Iterable[Grade],
    samples_per_question: Plan | int | None,
    independent: Mapping[str, int] = MappingProxyType({}),
) -> Tallies:
    """Count the right, wrong and missing samples of each question. Of several grades of one sample the first counts.

    With a plan, samples beyond it and grades of unplanned questions are left out with a warning. An unfinished run is
    scored on complete rounds (one sample of every question each), because samples that finish first tend to be short
    and right. independent: by question id, see `QuestionTally`. Raises `UsageError` for no question, a repeated id, or
    samples_per_question < 1.
    """
    plan = None if samples_per_question is None else Plan.every(samples_per_question)
    if plan is not None and plan.fewest < 1:
        raise UsageError(f"samples per question must be at least 1, not {plan.fewest}")
    numbers = _numbers(questions)
    most = [sys.maxsize if plan is None else plan.of(question_id) for question_id in numbers]
    held = grades if isinstance(grades, Sequence) else Packed(Grade, grades)
    of_question, of_index, of_position = array("q"), array("q"), array("q")
    foreign = beyond = 0
    for position, grade in enumerate(held):
        number = numbers.get(grade.question_id)
        if number is None:
            foreign += 1
        elif grade.sample_index >= most[number]:
            beyond += 1
        else:
            of_question.append(number)
            of_index.append(grade.sample_index)
            of_position.append(position)
    columns = (of_question, of_index, of_position)
    question_of, index, positions = (np.frombuffer(column, dtype=np.int64) for column in columns)
    if not _in_order(question_of, index):
        order = np.lexsort((index, question_of))  # Stable sort: grades of one key stay in their order.
        question_of, index, positions = question_of[order], index[order], positions[order]
    again = np.zeros(len(question_of), dtype=bool)
    again[1:] = (question_of[1:] == question_of[:-1]) & (index[1:] == index[:-1])
    repeated = [held[position].key for position in np.sort(positions[again])[:MAX_NAMED_KEYS].tolist()]
    if again.any():
        question_of, index, positions = question_of[~again], index[~again], positions[~again]

    present = len(positions)
    planned = present if plan is None else sum(most)
    missing = planned - present
    rounds = _complete_rounds(index if missing else index[:0], np.array(most))
    keep_rounds = bool(len(rounds)) and missing > MAX_MISSING_SHARE * planned
    if keep_rounds:
        complete = np.isin(index, rounds)
        question_of, positions = question_of[complete], positions[complete]
    ends = np.cumsum(np.bincount(question_of, minlength=len(numbers))).tolist()
    covers: Sequence[int] = range(len(positions))
    if len(positions) != len(held) or not (positions[1:] > positions[:-1]).all():
        covers = array("q", positions.tobytes())
    tallies = []
    for question, own, begin, end in zip(questions, most, [0, *ends], ends, strict=False):
        n_planned = int((rounds < own).sum()) if keep_rounds else end - begin if plan is None else own
        picked = Picked(held, covers, begin, end)
        tallies.append(QuestionTally(question, picked, n_planned, independent.get(question.question_id)))
    return Tallies(
        questions=tuple(tallies),
        planned=None if plan is None else plan.samples,
        allocated=plan is not None and bool(plan.by_question),
        covered=max(item.planned for item in tallies),
        missing=missing,
        partial=bool(missing) and not keep_rounds,
        warnings=_left_out(foreign, beyond, repeated, int(again.sum())),
    )


def _complete_rounds(index: NDArray[np.int64], most: NDArray[np.int64]) -> NDArray[np.int64]:
    """The indices of the complete rounds: those at which no question lacks its sample. Empty if some question has a
    sample in none of them.

    A question whose planned number of samples is i or less needs no sample of index i. index: of each sample that is
    there, all within their questions' plans. most: of each question, its planned number of samples.
    """
    indices, times = np.unique(index, return_counts=True)
    rounds = indices[times == np.array([(most > number).sum() for number in indices.tolist()], dtype=np.int64)]
    holds_all = bool(len(rounds)) and bool(rounds[0] < most.min())
    return np.asarray(rounds if holds_all else rounds[:0])


def _numbers(questions: Sequence[Question]) -> dict[str, int]:
    """Each question's number by id. Raises `UsageError` for no question, or one id twice."""
    numbers: dict[str, int] = {}
    for question in questions:
        if question.question_id in numbers:
            raise UsageError(f"question id {quoted(question.question_id)} occurs twice; ids must be unique")
        numbers[question.question_id] = len(numbers)
    if not numbers:
        raise UsageError("there are no questions to score")
    return numbers


def _in_order(question_of: NDArray[np.int64], index: NDArray[np.int64]) -> bool:
    """Whether the samples are sorted by question and index, as a run's grades are."""
    rising = (question_of[1:] > question_of[:-1]) | ((question_of[1:] == question_of[:-1]) & (index[1:] >= index[:-1]))
    return bool(rising.all())


def slim(question: Question, *, row: bool = False) -> Question:
    """A copy of the question with only its id and metadata: its texts would take most of the memory.

    row: also keep the digest of its row, which pairs it with the question of another run.
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
    """The samples of some questions in columns, question by question.

    question: number of each sample's question among the items. position: the position of its grade among all that were
    tallied. tokens: completion tokens, NaN where the server stated none. kinds: how many samples are of each kind.
    """

    question: NDArray[np.uint32]
    position: NDArray[np.uint32]
    tokens: NDArray[np.float64]
    correct: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    kinds: Mapping[GradeKind, int]

    @classmethod
    def of(cls, items: Sequence[QuestionTally]) -> SampleColumns:
        """The samples of all questions as columns."""
        tokens, facts, positions = array("d"), bytearray(), array("I")
        kinds: Counter[GradeKind] = Counter()
        for item in items:
            if isinstance(item.grades, Picked):
                positions.extend(iter(item.grades.indices))
            for grade in item.grades:
                n_tokens = grade.completion_tokens
                tokens.append(math.nan if n_tokens is None else min(n_tokens, _MAX_TOKENS))
                facts.append((grade.verdict == "correct") | grade.truncated << 1)
                kinds[GradeKind(grade.verdict, grade.rule, grade.grader, grade.unextracted, grade.near_miss)] += 1
        bits = np.frombuffer(facts, dtype=np.uint8)
        return cls(
            question=np.repeat(np.arange(len(items), dtype=np.uint32), [item.n for item in items]),
            position=np.frombuffer(positions, dtype=np.uint32),
            tokens=np.frombuffer(tokens),
            correct=(bits & 1).astype(bool),
            truncated=(bits >> 1).astype(bool),
            kinds=kinds,
        )


class GradeKind(NamedTuple):
    """The facts of a grade by which the samples of a score are counted in kinds."""

    verdict: Verdict
    rule: str
    grader: str
    unextracted: bool
    near_miss: NearMiss | None


def _left_out(foreign: int, beyond: int, repeated: Sequence[Key], n_repeated: int) -> tuple[str, ...]:
    """The warnings about grades left out. repeated: the first few of n_repeated keys that occur again.

    foreign: grades of questions outside the plan. beyond: grades of samples outside the plan.
    """
    warnings = []
    if foreign:
        warnings.append(f"{_count(foreign, 'grade')} of questions outside the plan left out")
    if beyond:
        warnings.append(f"{_count(beyond, 'grade')} of samples beyond the planned number left out")
    if n_repeated:
        named = ", ".join(f"{quoted(key.question_id)} #{key.sample_index}" for key in repeated)
        more = f" and {n_repeated - len(repeated)} more" if n_repeated > len(repeated) else ""
        warnings.append(f"{_count(n_repeated, 'grade')} with a repeated key left out: {named}{more}")
    return tuple(warnings)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
