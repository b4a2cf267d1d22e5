"""The samples of an audit as a person sees them: without the grader's verdict and its rule."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.errors import StoreError
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.core.records import Key, SampleRecord, Verdict
from harness.scoring.audit import Audited, audited, draw
from harness.scoring.rubrics import Rubric, rubric_of
from harness.scoring.score import Score, counted_copies, intervals_of
from harness.scoring.tally import QuestionTally
from harness.viewer.library import OpenBenchmark
from harness.viewer.rows import text_of

SAMPLES = 100
"""Default number of samples of a benchmark that a person audits."""


class AuditItem(SampleRecord, frozen=True, kw_only=True):
    """One sample to judge: a line of the file that `harness audit` writes and reads.

    answer: the text that the grader took for the answer; None: it found none. text: the response, without reasoning
    that the server sent in a field of its own. verdict: the person's; None before the person has judged.
    """

    question: str
    references: tuple[str, ...]
    answer: str | None
    text: str
    verdict: Verdict | None = None


def drawn(benchmark: OpenBenchmark, n: int) -> list[Key]:
    """The keys of the first `n` samples of the random draw, judged or not. Raises `StoreError` if the benchmark is not
    scored."""
    return draw(_counted(benchmark), n)


def left(benchmark: OpenBenchmark, keys: Sequence[Key]) -> list[Key]:
    """Return those of `keys` that nobody has audited."""
    return [key for key in keys if key not in benchmark.audits]


def item(benchmark: OpenBenchmark, key: Key) -> AuditItem:
    """Return the sample `key` to judge. Raises `UsageError` and `StoreError`."""
    question, grade = benchmark.question(key.question_id), benchmark.grade(key)
    return AuditItem(
        benchmark=benchmark.name,
        question_id=key.question_id,
        sample_index=key.sample_index,
        question=text_of(question),
        references=question.references,
        answer=None if grade is None else grade.extracted,
        text=benchmark.offsets.read(key).text or "",
    )


def estimate(benchmark: OpenBenchmark) -> Audited | None:
    """Return the accuracy that the audits so far suggest; None without audits. Raises `StoreError` if the benchmark is
    not scored.
    """
    score = score_of(benchmark)
    if score.accuracy is None or not benchmark.audits:
        return None
    items, rubric = counted_copies(score, _counted(benchmark)), rubric_used(benchmark)
    return audited(items, benchmark.audits, intervals_of(score), since=rubric and rubric.since)


def rubric_used(benchmark: OpenBenchmark) -> Rubric | None:
    """Return the rubric by which a judge decided samples of the benchmark; None without one."""
    return rubric_of(benchmark.folder, (grade for of in benchmark.grades.values() for grade in of.values()))


def _counted(benchmark: OpenBenchmark) -> Sequence[QuestionTally]:
    """The questions with the samples that the score counts.

    Raises `StoreError` if the benchmark is not scored, or if its grades are not those that were scored.
    """
    score = score_of(benchmark)
    # A score may count continued samples or not; the number of samples shows which.
    for salvaged in True, False:
        items = benchmark.tallies(overridden=False, salvaged=salvaged)
        if sum(item.n for item in items) == score.n_samples:
            return items
    raise StoreError(
        f"{visible(benchmark.name, 80)}: its score counts {count_noun(score.n_samples, 'sample')}, but the grades "
        "cover another number: give `harness score` again first."
    )


def score_of(benchmark: OpenBenchmark) -> Score:
    """Return the benchmark's score. Raises `StoreError` where it is not scored."""
    if benchmark.score is None or not benchmark.grades:
        raise StoreError(f"{visible(benchmark.name, 80)} is not scored: nothing can be audited yet; score it first.")
    return benchmark.score
