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
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.errors import UsageError
from harness.core.fixed_rows import FixedRows
from harness.core.inert import quoted
from harness.core.nouns import count_noun
from harness.core.packed import Packed, Picked
from harness.core.records import Grade, Key, NearMiss, Question, VerdictName
from harness.runs.record import Plan
from harness.scoring.anomalies import Copies, copies_among
from harness.scoring.stats_draws import VoteGroup

MAX_MISSING_SHARE = 0.01
"""An unfinished run that misses more than this fraction of its samples is scored on its complete rounds only."""

_MAX_TOKENS = 1 << 53
"""Largest number of tokens that is counted; larger ones count as this one. Above it a float is not exact."""

MAX_NAMED_KEYS = 5
"""Largest number of keys that a warning names; the others are counted."""


@dataclass(frozen=True, slots=True)
class QuestionTally:
    """The numbers of one question's samples, as a score needs them. planned: samples that the score should cover.

    correct: samples graded correct. undecided: samples on which the grader could not decide; the accuracy counts them
    as wrong, the bounds as open. uncut: samples not cut by max_tokens; uncut_correct: those of them graded correct.
    n_cut: samples cut by max_tokens; None where it is not stated of every sample.
    independent: how many independent samples the present ones are worth if some repeat the text of another (copies);
    None: all. parts: parts of the answer; 0 where no grade states them. shares, squares: sums over the samples of
    `Grade.share_right` and of its square.
    """

    question: Question
    grades: Sequence[Grade]
    planned: int
    independent: int | None = None
    correct: int = field(init=False)
    undecided: int = field(init=False)
    uncut: int = field(init=False)
    n_cut: int | None = field(init=False)
    uncut_correct: int = field(init=False)
    parts: int = field(init=False, default=0)
    shares: float = field(init=False, default=0.0)
    squares: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        facts = self.facts
        signs = facts["signs"]
        object.__setattr__(self, "correct", int(np.count_nonzero(signs & _CORRECT)))
        object.__setattr__(self, "undecided", int(np.count_nonzero(signs & _UNDECIDED)))
        object.__setattr__(self, "uncut", int(np.count_nonzero(signs & _TRUNCATED == 0)))
        object.__setattr__(self, "n_cut", None if (signs & _MAYBE_CUT).any() else self.n - self.uncut)
        object.__setattr__(self, "uncut_correct", int(np.count_nonzero(signs & (_TRUNCATED | _CORRECT) == _CORRECT)))
        if (signs & _STATES_PARTS).any():
            shares = facts["share"].tolist()
            object.__setattr__(self, "parts", int(facts["parts"].max()))
            object.__setattr__(self, "shares", math.fsum(shares))
            object.__setattr__(self, "squares", math.fsum(share**2 for share in shares))
        else:
            object.__setattr__(self, "shares", float(self.correct))
            object.__setattr__(self, "squares", self.shares)

    @property
    def facts(self) -> NDArray[Any]:
        """The numbers of the question's samples (`_FIELDS`), in the order of the grades: (n,)."""
        if isinstance(self.grades, _Covered):
            return self.grades.facts
        facts = _Facts()
        for grade in self.grades:
            facts.add(0, grade)
        return facts.rows.read(0, len(facts.rows))

    @property
    def n(self) -> int:
        """The number of samples present."""
        return len(self.grades)

    @property
    def rate(self) -> float | None:
        """The fraction of the samples graded correct; None without samples."""
        return self.correct / self.n if self.n else None

    @property
    def cluster(self) -> str:
        """The label of the question's cluster; the questions of a cluster are not independent.

        It is the value of the card's `cluster_key`, the id of the question that this one reorders or twins, or its own
        id.
        """
        metadata = self.question.metadata
        # Any card may have a column named "original"; only that of a twin groups questions.
        names = ("cluster", "same_as", "original") if "twin_of" in metadata else ("cluster", "same_as")
        return str(next((metadata[name] for name in names if name in metadata), self.question.question_id))

    def votes(self) -> tuple[list[VoteGroup], int]:
        """Return (groups of equal votes, number of samples that do not vote)."""
        sizes: Counter[int] = Counter()
        correct: Counter[int] = Counter()
        facts = self.facts
        voting = facts[facts["signs"] & _VOTES != 0]
        for vote, signs in zip(voting["vote"].tolist(), voting["signs"].tolist(), strict=True):
            sizes[vote] += 1
            correct[vote] += signs & _CORRECT
        return [VoteGroup(size, correct[vote]) for vote, size in sizes.items()], self.n - len(voting)


_FIELDS = {
    "question": "I", "index": "q", "position": "I", "kind": "I", "signs": "B", "vote": "q", "tokens": "d",
    "share": "d", "parts": "q", "text": "q",
}  # fmt: skip
"""The facts of a grade that a score counts, in 61 bytes. question, kind: numbers of its question and `GradeKind`.
position: among all grades. vote: its hash. tokens: NaN if not stated. share: fraction of the answer that is right.
text: the reply's checksum, -1 if not known.
"""

_CORRECT, _UNDECIDED, _TRUNCATED, _VOTES, _STATES_PARTS, _MAYBE_CUT = 1, 2, 4, 8, 16, 32


class _Facts:
    """The numbers of grades (`_FIELDS`) in rows. kinds: kind → its number. tokens: whether any grade states tokens."""

    def __init__(self) -> None:
        self.rows = FixedRows(_FIELDS)
        self.kinds: dict[GradeKind, int] = {}
        self.tokens = False

    def add(self, question: int, grade: Grade, position: int = 0) -> None:
        """Add a grade. question: the number of its question. position: its position among all grades."""
        kind = GradeKind(grade.verdict, grade.rule, grade.grader, grade.unextracted, grade.near_miss)
        signs = {"correct": _CORRECT, "undecided": _UNDECIDED}.get(grade.verdict, 0)
        signs |= _MAYBE_CUT if grade.truncated is None else _TRUNCATED * grade.truncated
        signs |= _VOTES * (grade.vote is not None and grade.verdict != "no_answer")
        tokens, parts = math.nan, 0
        if grade.completion_tokens is not None:
            self.tokens = True
            tokens = min(grade.completion_tokens, _MAX_TOKENS)
        if grade.parts is not msgspec.UNSET:
            signs |= _STATES_PARTS
            parts = min(grade.parts[1], _MAX_TOKENS)
        # A score compares votes of one question only: among a million, two hashes of 64 bits are equal by chance once
        # in 10⁷ scores, and the key of Python's hash is drawn anew in each process, so that no reply can aim at it.
        number = self.kinds.setdefault(kind, len(self.kinds))
        text = -1 if grade.reply_checksum is None else grade.reply_checksum & sys.maxsize
        vote, share = hash(grade.vote), grade.share_right
        self.rows.append(question, grade.sample_index, position, number, signs, vote, tokens, share, parts, text)


class _Covered(Picked[Grade]):
    """The grades of one question that a score covers. rows: the numbers of the covered grades of all questions."""

    __slots__ = ("_rows",)

    def __init__(self, grades: Sequence[Grade], rows: FixedRows, indices: Sequence[int], begin: int, end: int) -> None:
        super().__init__(grades, indices, begin, end)
        self._rows = rows

    @property
    def facts(self) -> NDArray[Any]:
        """The numbers of the grades (`_FIELDS`): (n,)."""
        return self._rows.read(self._begin, self._end)


class _Positions(Sequence[int]):
    """The positions of the grades in the list of all grades, read from `rows` when they are needed."""

    def __init__(self, rows: FixedRows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...

    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, slice):
            begin, end, _ = index.indices(len(self))
            return list(self._rows.read(begin, end)["position"].tolist())
        return int(self._rows.read(index, index + 1)["position"][0])


@dataclass(frozen=True, slots=True)
class Tallies:
    """The samples that one score covers.

    questions: in the order asked. planned: most samples planned of a question (None: the stored samples are the plan).
    allocated: a former run decided the numbers. covered: samples of each question that the score covers. missing:
    planned samples without a grade. partial: samples are missing within the covered ones. warnings: sentences on grades
    that do not count. kinds: how many samples are of each kind. tokens_stated: whether any grade states its completion
    tokens. copies: equal replies among the covered samples; None where no grade knows its reply.
    """

    questions: tuple[QuestionTally, ...]
    planned: int | None
    allocated: bool
    covered: int
    missing: int
    partial: bool
    warnings: tuple[str, ...]
    kinds: Mapping[GradeKind, int]
    tokens_stated: bool
    copies: Copies | None


def tally(questions: Sequence[Question], grades: Iterable[Grade], samples_per_question: Plan | int | None) -> Tallies:
    """Count the right, wrong and missing samples of each question. If a sample has several grades, the first counts.

    Grades of other questions, and with a plan those of samples beyond it, are left out with a warning. Without a plan,
    the stored samples are the plan, but a question without any lacks as many as most questions have (of several such
    numbers, the largest). Complete rounds are scored where many samples are missing, because samples that finish first
    tend to be short and right. Raises `UsageError` for no question, a repeated id, or samples_per_question < 1.
    """
    plan = None if samples_per_question is None else Plan.every(samples_per_question)
    if plan is not None and plan.fewest < 1:
        raise UsageError(f"samples per question must be at least 1, not {plan.fewest}")
    held = grades if isinstance(grades, Sequence) else Packed(Grade, grades)
    most, facts, foreign, beyond = _read(questions, held, plan)
    rows, repeated, n_repeated, indices = _without_repeats(facts.rows, len(questions), counts_rounds=plan is not None)
    missing = 0 if plan is None else int(most.sum()) - len(rows)
    rounds = _complete_rounds(*indices, most) if missing else np.zeros(0, dtype=np.int64)
    keep_rounds = bool(len(rounds)) and missing > MAX_MISSING_SHARE * most.sum()
    if keep_rounds:
        rows = _of_rounds(rows, rounds)
    n, kinds, in_order = _counts(rows, len(questions), facts.kinds)
    every = rows.read(0, len(rows))
    copies, independent = copies_among(every["question"], every["text"], len(questions)) or (None, n)
    if plan is None:
        times = np.bincount(n[n > 0], minlength=1)
        most = np.where(n > 0, n, len(times) - 1 - int(times[::-1].argmax()))
        missing = int(most.sum()) - len(rows)
    ends = np.cumsum(n).tolist()
    positions = range(len(rows)) if in_order and len(rows) == len(held) else _Positions(rows)
    tallies = []
    many = copies is not None and copies.many
    for number, n_planned, begin, end in zip(range(len(questions)), most.tolist(), [0, *ends], ends, strict=False):
        if keep_rounds:
            n_planned = int((rounds < n_planned).sum())
        covered = _Covered(held, rows, positions, begin, end)
        tallies.append(QuestionTally(questions[number], covered, n_planned, int(independent[number]) if many else None))
    return Tallies(
        questions=tuple(tallies),
        planned=None if plan is None else plan.samples,
        allocated=plan is not None and bool(plan.by_question),
        covered=max(item.planned for item in tallies),
        missing=missing,
        partial=bool(missing) and not keep_rounds,
        warnings=_left_out(foreign, beyond, [held[position].key for position in repeated], n_repeated),
        kinds=kinds,
        tokens_stated=facts.tokens,
        copies=copies,
    )


def _read(
    questions: Sequence[Question], grades: Sequence[Grade], plan: Plan | None
) -> tuple[NDArray[np.int64], _Facts, int, int]:
    """Return (numbers of samples, facts of the planned grades, number of foreign grades, number beyond the plan).

    A foreign grade is of a question not in `questions`. Raises `UsageError` if there is no question, or two have one
    id.
    """
    numbers = _numbers(questions)
    of_each = (sys.maxsize if plan is None else plan.of(question_id) for question_id in numbers)
    most = np.fromiter(of_each, np.int64, len(numbers))
    facts = _Facts()
    foreign = beyond = 0
    for position, grade in enumerate(grades):
        number = numbers.get(grade.question_id)
        if number is None:
            foreign += 1
        elif grade.sample_index >= most[number]:
            beyond += 1
        else:
            facts.add(number, grade, position)
    return most, facts, foreign, beyond


def _without_repeats(
    rows: FixedRows, n_questions: int, *, counts_rounds: bool
) -> tuple[FixedRows, list[int], int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Sort the rows by question and sample index, and keep the first of several rows of one sample.

    Returns (these rows, positions of the first few repeats, number of repeats, (sample indices, rows of each index)).
    """
    firsts = FixedRows(_FIELDS)
    repeated: list[int] = []
    n_repeated = 0
    indices = times = np.zeros(0, dtype=np.int64)
    for of_some in rows.grouped(n_questions):
        # A stable sort: grades of one key stay in their order.
        group = of_some[np.lexsort((of_some["index"], of_some["question"]))]
        again = np.zeros(len(group), dtype=bool)
        again[1:] = (group["question"][1:] == group["question"][:-1]) & (group["index"][1:] == group["index"][:-1])
        if again.any():
            repeated = sorted([*repeated, *group["position"][again].tolist()])[:MAX_NAMED_KEYS]
            n_repeated += int(again.sum())
            group = group[~again]
        if counts_rounds:  # else both arrays stay empty
            indices, where = np.unique(np.concatenate([indices, group["index"]]), return_inverse=True)
            weights = np.concatenate([times, np.ones(len(group), dtype=np.int64)])
            times = np.bincount(where, weights=weights, minlength=len(indices)).astype(np.int64)
        firsts.extend(group)
    return firsts, repeated, n_repeated, (indices, times)


def _of_rounds(rows: FixedRows, rounds: NDArray[np.int64]) -> FixedRows:
    """The rows whose sample index is in `rounds`."""
    complete = FixedRows(_FIELDS)
    for block in rows.blocks():
        complete.extend(block[np.isin(block["index"], rounds)])
    return complete


def _counts(
    rows: FixedRows, n_questions: int, kinds: Mapping[GradeKind, int]
) -> tuple[NDArray[np.int64], dict[GradeKind, int], bool]:
    """Return (rows of each question, rows of each kind, whether positions rise). kinds: kind → its number in rows."""
    of_questions, of_kinds = np.zeros(n_questions, dtype=np.int64), np.zeros(len(kinds), dtype=np.int64)
    rising, last = True, -1
    for block in rows.blocks():
        of_questions += np.bincount(block["question"], minlength=n_questions)
        of_kinds += np.bincount(block["kind"], minlength=len(kinds))
        position = block["position"].astype(np.int64)
        rising = rising and position[0] > last and bool((position[1:] > position[:-1]).all())
        last = int(position[-1])
    return of_questions, {kind: n for kind, n in zip(kinds, of_kinds.tolist(), strict=True) if n}, rising


def _complete_rounds(
    indices: NDArray[np.int64], times: NDArray[np.int64], most: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The indices of the complete rounds: those at which no question lacks its sample.

    Empty if some question has a sample in none of them. A question with i planned samples or fewer needs none of index
    i. indices, times: the sample indices that are there, and how many samples have each. most: planned samples by
    question.
    """
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


def slim(question: Question, *, row: bool = False) -> Question:
    """A copy of the question with only its id and metadata, since its texts would take most of the memory.

    row: also keep the digest of its row, which pairs it with the question of another run.
    """
    return Question(
        benchmark=sys.intern(question.benchmark),
        question_id=question.question_id,
        references=(),
        kind=question.kind,
        metadata=question.metadata,
        row_digest=question.row_digest if row else "",
        prompt_digest="",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleColumns:
    """The samples of some questions in columns, question by question.

    question: number of each sample's question. position: that of its grade among all that were tallied. tokens:
    completion tokens, NaN where the server stated none.
    """

    question: NDArray[np.uint32]
    position: NDArray[np.uint32]
    tokens: NDArray[np.float64]
    correct: NDArray[np.bool_]

    @classmethod
    def of(cls, items: Sequence[QuestionTally]) -> SampleColumns:
        """The samples of all questions as columns."""
        tokens, correct, positions = bytearray(), bytearray(), bytearray()
        for item in items:
            facts = item.facts
            tokens += facts["tokens"].tobytes()
            correct += (facts["signs"] & _CORRECT).tobytes()
            positions += facts["position"].tobytes()
        return cls(
            question=np.repeat(np.arange(len(items), dtype=np.uint32), [item.n for item in items]),
            position=np.frombuffer(positions, dtype=np.uint32),
            tokens=np.frombuffer(tokens),
            correct=np.frombuffer(correct, dtype=bool),
        )


class GradeKind(NamedTuple):
    """The facts of a grade by which the samples of a score are counted in kinds."""

    verdict: VerdictName
    rule: str
    grader: str
    unextracted: bool
    near_miss: NearMiss | None


def _left_out(foreign: int, beyond: int, repeated: Sequence[Key], n_repeated: int) -> tuple[str, ...]:
    """The warnings about grades left out. repeated: the first few of the n_repeated keys that occur again."""
    warnings = []
    if foreign:
        warnings.append(f"{count_noun(foreign, 'grade')} of questions outside the plan left out")
    if beyond:
        warnings.append(f"{count_noun(beyond, 'grade')} of samples beyond the planned number left out")
    if n_repeated:
        named = ", ".join(f"{quoted(key.question_id)} #{key.sample_index}" for key in repeated)
        more = f" and {n_repeated - len(repeated)} more" if n_repeated > len(repeated) else ""
        warnings.append(f"{count_noun(n_repeated, 'grade')} with a repeated key left out: {named}{more}")
    return tuple(warnings)
