"""Compares two runs on one benchmark: questions whose fraction correct changed, samples whose verdict changed, and
settings that differ. `harness compare` reports how certain the difference is, and its limitations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.core.errors import UsageError
from harness.core.number_text import count_noun, in_percent
from harness.core.records import Key, VerdictName
from harness.deciding.paired_comparison import compare_runs, pairs
from harness.deciding.verdicts import RunPair, decide
from harness.runs.recorded_settings import describe_setting, server_differences, setting_differences, value_text
from harness.scoring.grading_settings import grading_differences, grading_settings
from harness.scoring.run_reader import OpenBenchmark, OpenRun
from harness.scoring.table_cells import point_cells
from harness.viewer.rows import excerpt, title


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One question in both runs. title: as in `QuestionRow`. excerpt: the beginning of its text. first, second: text
    with the percentage of its graded samples that are correct. change: in points, second minus first.
    """

    id: str
    title: str
    excerpt: str
    first: str
    second: str
    change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Number of samples with equal keys that have the verdict `first` in the first run and `second` in the second."""

    first: VerdictName | None
    second: VerdictName | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The second run, B, compared with the first, A.

    lines: sentences on the difference, starting with the answer; manual verdicts count. moved: the questions that
    are asked the same way in both runs, in order. flips: changed verdicts of samples with equal index, most frequent
    first. n_same: number of samples with equal index and equal verdict. settings: (name, first run's value, second
    run's value) as text, for each setting that differs; grading settings come last.
    """

    benchmark: str
    lines: Sequence[str]
    moved: Sequence[Moved]
    flips: Sequence[Flip]
    n_same: int
    settings: Sequence[tuple[str, str, str]]


def compare(first_run: OpenRun, second_run: OpenRun, name: str, other: str = "") -> Compared:
    """Compare two runs on a benchmark. Raises `UsageError` if a run does not have it, `StoreError` if it cannot be
    read.

    other: the benchmark's name in the second run, if it is different there.
    """
    first, second = first_run.benchmark(name), second_run.benchmark(other or name)
    tallies = first.tallies(overridden=True), second.tallies(overridden=True)
    moved = [
        Moved(
            id=tally.question.question_id,
            title=title(first, first.questions[tally.question.question_id]),
            excerpt=excerpt(first, first.questions[tally.question.question_id]),
            first=f"{100 * tally.right / tally.n:.0f}% of {tally.n}",
            second=f"{100 * match.right / match.n:.0f}% of {match.n}",
            change=100 * (match.right / match.n - tally.right / tally.n),
        )
        for tally, match in pairs(*tallies)
    ]
    ids = [question.id for question in moved]
    try:
        # `compare_runs` subtracts its second run from its first; here, the first run is subtracted from the second.
        pair = RunPair(run=second_run.label, baseline=first_run.label, paired=compare_runs(*reversed(tallies)))
        lines = _difference_sentences(pair)
    except UsageError as error:  # no question has graded samples in both runs
        ungraded = [which for which, run in (("first", first), ("second", second)) if run.n_stored and not run.grades]
        lines = [f"no samples of the {' or the '.join(ungraded)} run have been graded yet" if ungraded else str(error)]
    flips, n_same = _flips(first, second, ids)
    return Compared(
        benchmark=first.name,
        lines=lines,
        moved=moved,
        flips=flips,
        n_same=n_same,
        settings=_settings(first_run, second_run, name, other or name),
    )


def _difference_sentences(pair: RunPair) -> list[str]:
    """The answer of `harness compare`, and sentences on the difference B minus A, where B is the run of `pair`."""
    paired, (*_, new) = pair.paired, point_cells(pair.paired.difference)
    if paired.difference.question is None:
        new = "unknown"
    return [
        decide([pair])[0].sentence,
        f"A {in_percent(paired.second_accuracy)}%, B {in_percent(paired.first_accuracy)}% over "
        f"{count_noun(paired.n_questions, 'question')}; B better on {paired.better}, worse on {paired.worse}",
        f"95% interval for new questions of the same kind: {new}",
        "Run harness compare for the tests of this difference and for its limitations.",
    ]


def _settings(first_run: OpenRun, second_run: OpenRun, name: str, other: str) -> list[tuple[str, str, str]]:
    """The settings that differ, as text."""
    first, second = first_run.benchmarks[name], second_run.benchmarks[other]
    servers = [run.manifest.provenance for run in (first_run, second_run) if run.manifest is not None]
    changed = setting_differences(first.record, second.record, servers)
    if len(servers) == 2:
        changed += server_differences(*servers)
    rows = [(describe_setting(field), value_text(old), value_text(new)) for field, old, new, _ in changed]
    if first.score is not None and second.score is not None:
        rows += grading_differences(grading_settings(first.score), grading_settings(second.score))
    return rows


def _flips(first: OpenBenchmark, second: OpenBenchmark, question_ids: Sequence[str]) -> tuple[list[Flip], int]:
    """Count the samples with different verdicts by pair of verdicts, and the samples with equal verdicts.

    question_ids: ids of the questions in both runs.
    """
    counts = Counter(
        tuple(run.verdict(Key(question_id, index)) for run in (first, second))
        for question_id in question_ids
        for index in first.grades.get(question_id, {}).keys() & second.grades.get(question_id, {}).keys()
    )
    flips = [Flip(first=ours, second=theirs, n=n) for (ours, theirs), n in counts.most_common() if ours != theirs]
    return flips, counts.total() - sum(flip.n for flip in flips)
