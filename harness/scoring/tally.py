"""Grades counted per question: which samples are covered, which are missing, who voted for what."""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.core.errors import UsageError
from harness.core.inert import quoted
from harness.core.packed import Packed, Picked
from harness.core.records import Grade, Key, NearMiss, Question, Verdict
from harness.scoring.estimators import VoteGroup

MAX_MISSING_SHARE = 0.01
"""Above this share of missing samples an unfinished run is scored on its complete rounds only."""

_NO_METADATA: dict[str, Any] = {}

_MAX_TOKENS = 1 << 53
"""A server that states more talks nonsense; up to here a float is exact."""

MAX_NAMED_KEYS = 5
"""Keys that one warning names; the rest are counted."""


@dataclass(frozen=True, slots=True)
class QuestionTally:
    """One question's covered samples. planned: samples that the score wants of it; correct: those graded so.

    undecided: those on which the grader could not decide, which are wrong in the headline and open in the bounds.
    """

    question: Question
    grades: Sequence[Grade]
    planned: int
    correct: int = field(init=False)
    undecided: int = field(init=False)

    def __post_init__(self) -> None:
        verdicts = [grade.verdict for grade in self.grades]
        object.__setattr__(self, "correct", verdicts.count("correct"))
        object.__setattr__(self, "undecided", verdicts.count("undecided"))

    @property
    def n(self) -> int:
        """Samples present."""
        return len(self.grades)

    @property
    def rate(self) -> float | None:
        """Fraction correct."""
        return self.correct / self.n if self.n else None

    @property
    def cluster(self) -> str:
        """What the question shares with others that are not independent of it: the card's `cluster_key`, the question
        of which it is another order, or itself."""
        metadata = self.question.metadata
        return str(metadata.get("cluster", metadata.get("same_as", self.question.question_id)))

    def votes(self) -> tuple[list[VoteGroup], int]:
        """The groups of equal votes, and how many samples do not vote."""
        sizes: Counter[str] = Counter()
        correct: Counter[str] = Counter()
        for grade in self.grades:
            if grade.vote is not None and grade.verdict != "no_answer":
                sizes[grade.vote] += 1
                correct[grade.vote] += grade.verdict == "correct"
        return [VoteGroup(size, correct[vote]) for vote, size in sizes.items()], self.n - sizes.total()


@dataclass(frozen=True, slots=True)
class Tallies:
    """What one score covers.

    questions: in the order asked. planned: samples of each question that were planned (None: what is there is the
    plan). covered: samples of each question that the score covers. missing: planned samples without a grade.
    partial: samples are missing inside what is covered. warnings: sentences about grades that do not count.
    """

    questions: tuple[QuestionTally, ...]
    planned: int | None
    covered: int
    missing: int
    partial: bool
    warnings: tuple[str, ...]


def tally(questions: Sequence[Question], grades: Iterable[Grade], samples_per_question: int | None) -> Tallies:
    """Count `grades` by question; order of the grades does not matter but for repeated keys, of which the first counts.

    With a plan, samples beyond it and grades of questions that were not planned are left out with a warning. Where more
    than `MAX_MISSING_SHARE` is missing and some rounds (one sample of every question) are complete, only these are
    covered: what finished first tends to be short and right. Raises `UsageError` for no question, one id twice, or
    samples_per_question < 1.
    """
    if samples_per_question is not None and samples_per_question < 1:
        raise UsageError(f"samples per question must be at least 1, not {samples_per_question}")
    numbers: dict[str, int] = {}
    for question in questions:
        if question.question_id in numbers:
            raise UsageError(f"question id {quoted(question.question_id)} occurs twice; ids must be unique")
        numbers[question.question_id] = len(numbers)
    if not numbers:
        raise UsageError("there are no questions to score")

    held = grades if isinstance(grades, Sequence) else Packed(Grade, grades)
    of_question, of_index, at = array("q"), array("q"), array("q")
    foreign = beyond = 0
    for place, grade in enumerate(held):
        number = numbers.get(grade.question_id)
        if number is None:
            foreign += 1
        elif samples_per_question is not None and grade.sample_index >= samples_per_question:
            beyond += 1
        else:
            of_question.append(number)
            of_index.append(grade.sample_index)
            at.append(place)
    of, index, places = (np.frombuffer(one, dtype=np.int64) for one in (of_question, of_index, at))
    if not _in_order(of, index):
        order = np.lexsort((index, of))  # of one key in the order of the grades
        of, index, places = of[order], index[order], places[order]
    again = np.zeros(len(of), dtype=bool)
    again[1:] = (of[1:] == of[:-1]) & (index[1:] == index[:-1])
    repeated = [held[place].key for place in np.sort(places[again])[:MAX_NAMED_KEYS].tolist()]
    if again.any():
        of, index, places = of[~again], index[~again], places[~again]

    present = len(places)
    planned = len(numbers) * samples_per_question if samples_per_question is not None else present
    missing = planned - present
    indices, times = np.unique(index if missing else index[:0], return_counts=True)
    rounds = indices[times == len(numbers)]  # those of every question
    keep_rounds = bool(len(rounds)) and missing > MAX_MISSING_SHARE * planned
    if keep_rounds:
        kept = np.isin(index, rounds)
        of, places = of[kept], places[kept]
    ends = np.cumsum(np.bincount(of, minlength=len(numbers))).tolist()
    covers: Sequence[int] = range(len(places))
    if len(places) != len(held) or not (places[1:] > places[:-1]).all():
        covers = array("q", places.tobytes())
    tallies = []
    for question, begin, end in zip(questions, [0, *ends], ends, strict=False):
        wanted = len(rounds) if keep_rounds else end - begin if samples_per_question is None else samples_per_question
        tallies.append(QuestionTally(question, Picked(held, covers, begin, end), wanted))
    return Tallies(
        questions=tuple(tallies),
        planned=samples_per_question,
        covered=max(item.planned for item in tallies),
        missing=missing,
        partial=bool(missing) and not keep_rounds,
        warnings=_left_out(foreign, beyond, repeated, int(again.sum())),
    )


def _in_order(of: NDArray[np.int64], index: NDArray[np.int64]) -> bool:
    """By question and index, as a run's grades are."""
    rising = (of[1:] > of[:-1]) | ((of[1:] == of[:-1]) & (index[1:] >= index[:-1]))
    return bool(rising.all())


def slim(question: Question, *, row: bool = False) -> Question:
    """What a score needs of a question: its id and metadata; `row`: also the digest of its row, to pair it with that of
    another run. Of a large set the texts would take most of the memory."""
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
class Columns:
    """The samples of some questions, question by question, in columns; the grades are gone through once for it.

    question: place of each one's question among the items. place: its place among the grades that were tallied.
    tokens: NaN where the server stated none. kinds: how many samples there are of each verdict, rule, grader and
    oddity.
    """

    question: NDArray[np.uint32]
    place: NDArray[np.uint32]
    tokens: NDArray[np.float64]
    correct: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    kinds: Mapping[Kind, int]

    @classmethod
    def of(cls, items: Sequence[QuestionTally]) -> Columns:
        tokens, facts, places = array("d"), bytearray(), array("I")
        kinds: Counter[Kind] = Counter()
        for item in items:
            if isinstance(item.grades, Picked):
                places.extend(iter(item.grades.places))
            for grade in item.grades:
                known = grade.completion_tokens
                tokens.append(math.nan if known is None else min(known, _MAX_TOKENS))
                facts.append((grade.verdict == "correct") | grade.truncated << 1)
                kinds[Kind(grade.verdict, grade.rule, grade.grader, grade.unextracted, grade.near_miss)] += 1
        bits = np.frombuffer(facts, dtype=np.uint8)
        return cls(
            question=np.repeat(np.arange(len(items), dtype=np.uint32), [item.n for item in items]),
            place=np.frombuffer(places, dtype=np.uint32),
            tokens=np.frombuffer(tokens),
            correct=(bits & 1).astype(bool),
            truncated=(bits >> 1).astype(bool),
            kinds=kinds,
        )


class Kind(NamedTuple):
    """What many samples have in common."""

    verdict: Verdict
    rule: str
    grader: str
    unextracted: bool
    near_miss: NearMiss | None


def _left_out(foreign: int, beyond: int, repeated: Sequence[Key], n_repeated: int) -> tuple[str, ...]:
    """repeated: the first of the n_repeated grades whose key came before."""
    warnings = []
    if foreign:
        warnings.append(f"{_count(foreign, 'grade')} of questions outside the plan left out")
    if beyond:
        warnings.append(f"{_count(beyond, 'grade')} of samples beyond the planned number left out")
    if n_repeated:
        named = ", ".join(f"{quoted(key.question_id)} #{key.sample_index}" for key in repeated)
        more = f" and {n_repeated - len(repeated)} more" if n_repeated > len(repeated) else ""
        warnings.append(f"{_count(n_repeated, 'grade')} of keys already graded left out: {named}{more}")
    return tuple(warnings)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
