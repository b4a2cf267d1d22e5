"""How far two judges agree on one benchmark: judges of former scores left their opinions beside the grades.

The unit is a distinct answer of a question, since a judge is asked about it once: of a hundred equal samples, one
counts. Answers of one question are alike, so the interval takes questions as clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from harness.core.records import Grade, Key
from harness.runs.opinions import Opinion
from harness.scoring.stats import Interval, question_limits

JUDGE = "judge:"
"""The name of a judge in opinions begins with this (`harness.grading.second.judge.judge_name`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgesAgreement:
    """How far a judge agrees with another one on the distinct answers on which both gave a verdict.

    name: of the other judge. n_answers: such answers; n_equal: those with the same verdict. interval: 95 %, of the
    agreement on answers to other questions of this kind; None with answers to one question only. kappa: Cohen's (1960),
    the agreement beyond chance, at most 1; None if each judge has one verdict for all. differing: the first sample of
    each answer on which they differ → whether this judge calls it correct, and the number of samples with this answer.
    """

    name: str
    n_answers: int
    n_equal: int
    interval: Interval | None
    kappa: float | None
    differing: Mapping[Key, tuple[bool, int]]


def agreements(
    judge: str, verdicts: Mapping[Key, bool | None], opinions: Iterable[Opinion], grades: Iterable[Grade]
) -> Iterator[JudgesAgreement]:
    """Yield the agreement with each other judge that has an opinion on the same samples.

    judge: the name of this judge; verdicts: its verdicts. opinions: all of the benchmark. grades: of its samples.
    """
    by_judge: dict[str, dict[Key, bool]] = {}
    for opinion in opinions:
        if opinion.grader.startswith(JUDGE) and opinion.grader != judge and opinion.correct is not None:
            by_judge.setdefault(opinion.grader, {})[opinion.key] = opinion.correct
    answer_of = {grade.key: grade.extracted for grade in grades}
    for name, theirs in by_judge.items():
        shared = [(key, ours) for key in theirs if (ours := verdicts.get(key)) is not None and key in answer_of]
        if shared:
            # A sample without an extracted answer is an answer of its own.
            answers = ((key, answer_of[key] or key, ours, theirs[key]) for key, ours in shared)
            yield _agreement(name, answers)


def _agreement(name: str, answers: Iterable[tuple[Key, object, bool, bool]]) -> JudgesAgreement:
    """The agreement over `answers`: (sample, its answer, verdict of this judge, verdict of the other)."""
    first: dict[tuple[str, object, bool, bool], Key] = {}
    n_samples = Counter[Key]()
    for key, answer, ours, theirs in answers:
        n_samples[first.setdefault((key.question_id, answer, ours, theirs), key)] += 1
    # Answers to one question depend on each other, so that the interval takes the questions as clusters.
    questions: dict[str, list[bool]] = {}
    for question_id, _, ours, theirs in first:
        questions.setdefault(question_id, []).append(ours == theirs)
    table = Counter((ours, theirs) for _, _, ours, theirs in first)
    n, n_equal = len(first), table[True, True] + table[False, False]
    n_ours, n_theirs = table[True, True] + table[True, False], table[True, True] + table[False, True]
    # The agreement of two judges with these rates of "correct" who decide independently.
    chance = (n_ours * n_theirs + (n - n_ours) * (n - n_theirs)) / n**2
    interval = None
    if len(questions) > 1:
        shares = np.array([sum(equal) / len(equal) for equal in questions.values()])
        weights = np.array([float(len(equal)) for equal in questions.values()])
        interval = question_limits(shares, weights=weights).interval()
    return JudgesAgreement(
        name=name,
        n_answers=n,
        n_equal=n_equal,
        interval=interval,
        kappa=None if chance == 1 else (n_equal / n - chance) / (1 - chance),
        differing={key: (unit[2], n_samples[key]) for unit, key in first.items() if unit[2] != unit[3]},
    )
