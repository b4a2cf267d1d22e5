"""Grades counted per question: which samples are covered, which are missing, who voted for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.core.errors import UsageError
from harness.core.inert import quoted
from harness.core.records import Grade, Key, Question
from harness.scoring.estimators import VoteGroup

MAX_MISSING_SHARE = 0.01
"""Above this share of missing samples an unfinished run is scored on its complete rounds only."""

MAX_NAMED_KEYS = 5
"""Keys that one warning names; the rest are counted."""


@dataclass(frozen=True, slots=True)
class QuestionTally:
    """One question's covered samples. planned: samples that the score wants of it."""

    question: Question
    grades: tuple[Grade, ...]
    planned: int

    @property
    def n(self) -> int:
        """Samples present."""
        return len(self.grades)

    @property
    def correct(self) -> int:
        """Samples graded correct."""
        return sum(grade.verdict == "correct" for grade in self.grades)

    @property
    def undecided(self) -> int:
        """Samples on which the grader could not decide: wrong in the headline, open in the bounds."""
        return sum(grade.verdict == "undecided" for grade in self.grades)

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
    by_id: dict[str, dict[int, Grade]] = {}
    for question in questions:
        if question.question_id in by_id:
            raise UsageError(f"question id {quoted(question.question_id)} occurs twice; ids must be unique")
        by_id[question.question_id] = {}
    if not by_id:
        raise UsageError("there are no questions to score")

    foreign = beyond = 0
    repeated: list[Key] = []
    for grade in grades:
        place = by_id.get(grade.question_id)
        if place is None:
            foreign += 1
        elif samples_per_question is not None and grade.sample_index >= samples_per_question:
            beyond += 1
        elif grade.sample_index in place:
            repeated.append(grade.key)
        else:
            place[grade.sample_index] = grade

    present = sum(len(place) for place in by_id.values())
    planned = len(by_id) * samples_per_question if samples_per_question is not None else present
    missing = planned - present
    rounds = set.intersection(*(set(place) for place in by_id.values())) if missing else set()
    keep_rounds = bool(rounds) and missing > MAX_MISSING_SHARE * planned
    tallies = []
    for question in questions:
        place = by_id[question.question_id]
        kept = tuple(place[index] for index in sorted(place) if not keep_rounds or index in rounds)
        wanted = len(rounds) if keep_rounds else samples_per_question if samples_per_question is not None else len(kept)
        tallies.append(QuestionTally(question, kept, wanted))
    return Tallies(
        questions=tuple(tallies),
        planned=samples_per_question,
        covered=max(item.planned for item in tallies),
        missing=missing,
        partial=bool(missing) and not keep_rounds,
        warnings=_left_out(foreign, beyond, repeated),
    )


def _left_out(foreign: int, beyond: int, repeated: Sequence[Key]) -> tuple[str, ...]:
    warnings = []
    if foreign:
        warnings.append(f"{_count(foreign, 'grade')} of questions outside the plan left out")
    if beyond:
        warnings.append(f"{_count(beyond, 'grade')} of samples beyond the planned number left out")
    if repeated:
        named = ", ".join(f"{quoted(key.question_id)} #{key.sample_index}" for key in repeated[:MAX_NAMED_KEYS])
        more = f" and {len(repeated) - MAX_NAMED_KEYS} more" if len(repeated) > MAX_NAMED_KEYS else ""
        warnings.append(f"{_count(len(repeated), 'grade')} of keys already graded left out: {named}{more}")
    return tuple(warnings)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
