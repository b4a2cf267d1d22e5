"""The samples of an audit as the person sees them: without the grader's verdict and rule."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.core.errors import StoreError, UsageError
from harness.core.number_text import count_noun
from harness.core.records import NO_REPLY, Key, SampleRecord, VerdictName
from harness.core.sanitize import visible
from harness.scoring.benchmark_score import with_verdicts_by_hand
from harness.scoring.judging import rubric_of
from harness.scoring.run_reader import OpenBenchmark
from harness.scoring.score import Score
from harness.scoring.tally import QuestionTally
from harness.viewer.rows import shown_text


class AuditItem(SampleRecord, frozen=True, kw_only=True):
    """One sample to judge, which is a line of the file that `harness audit` writes and reads.

    answer: the text that the grader extracted as the answer; None if it found none. text: the response, without
    reasoning that the server sent in a separate field. verdict: the person's verdict; None before the person has
    judged. undecided: whether the person is asked because the grader left the sample undecided, not because of the
    random draw; otherwise unset. rubric: the question's own rubric. points: the points that the person awards, out of
    points_of; both unset where the judge awards no points.
    """

    question: str
    references: tuple[str, ...]
    answer: str | None
    text: str
    verdict: VerdictName | None = None
    undecided: bool | msgspec.UnsetType = msgspec.UNSET
    rubric: str | msgspec.UnsetType = msgspec.UNSET
    points: float | msgspec.UnsetType | None = msgspec.UNSET
    points_of: float | msgspec.UnsetType = msgspec.UNSET


def item(benchmark: OpenBenchmark, key: Key, *, undecided: bool = False) -> AuditItem:
    """Return the sample `key` to judge. Raises `UsageError` and `StoreError`. undecided: as in `AuditItem`."""
    question, grade, sample = benchmark.question(key.question_id), benchmark.grade(key), benchmark.offsets.read(key)
    if sample.has_verdict_only:
        raise UsageError(f"{visible(key.question_id, 100)}:{key.sample_index} cannot be judged: {NO_REPLY}")
    given = msgspec.UNSET if grade is None else grade.points
    return AuditItem(
        benchmark=benchmark.name,
        question_id=key.question_id,
        sample_index=key.sample_index,
        question=shown_text(benchmark, question),
        references=question.references,
        answer=None if grade is None else grade.extracted,
        text=sample.text or "",
        undecided=undecided or msgspec.UNSET,
        rubric=question.rubric,
        points=msgspec.UNSET if given is msgspec.UNSET else None,
        points_of=msgspec.UNSET if given is msgspec.UNSET else given[1],
    )


def update_score(benchmark: OpenBenchmark) -> Score:
    """Update the benchmark's stored score with its current manual verdicts; return the score.

    Raises `StoreError` if the benchmark is not scored or the score cannot be written.
    """
    # Without a manual verdict in effect, no grade is read: this only removes the effect of withdrawn verdicts.
    items = counted_questions(benchmark) if benchmark.overrides else ()
    renewed = with_verdicts_by_hand(score_of(benchmark), items, benchmark.override_history)
    if renewed != benchmark.score:
        renewed.save(benchmark.folder)
    return renewed


def rubric_used(benchmark: OpenBenchmark) -> str:
    """Return the rubric by which a judge decided the benchmark's samples; empty if there is none."""
    return rubric_of(benchmark.folder, (grade for of in benchmark.grades.values() for grade in of.values()))


def counted_questions(benchmark: OpenBenchmark) -> Sequence[QuestionTally]:
    """Return the questions with the samples that the score counts.

    Raises `StoreError` if the benchmark is not scored, or if its grades do not match the score.
    """
    score = score_of(benchmark)
    items = benchmark.tallies(overridden=False)
    if sum(item.n for item in items) == score.n_samples:
        return items
    raise StoreError(
        f"{visible(benchmark.name, 80)}: its score covers {count_noun(score.n_samples, 'sample')}, but the grades "
        "cover a different number; run `harness score` again first."
    )


def is_scored(benchmark: OpenBenchmark) -> bool:
    """Return whether the benchmark has a score and grades that match it."""
    try:
        return bool(counted_questions(benchmark))
    except StoreError:
        return False


def score_of(benchmark: OpenBenchmark) -> Score:
    """Return the benchmark's score. Raises `StoreError` if it is not scored or one of its files is damaged."""
    if benchmark.score is None or not benchmark.grades:
        if benchmark.problems:
            raise StoreError(benchmark.problems[0])
        raise StoreError(f"{visible(benchmark.name, 80)} cannot be audited because it has no score: score it first.")
    return benchmark.score
