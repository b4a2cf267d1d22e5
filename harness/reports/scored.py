"""What a report is made of: the scores, questions and grades of run folders, read only."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from harness.benchmarks import catalogue
from harness.reports.history import History, read_history
from harness.runs import grades as grade_file
from harness.runs import questions as question_file
from harness.runs.layout import BenchmarkFolder, RunFolder, labels
from harness.runs.manifest import BenchmarkRecord, Manifest
from harness.scoring import QuestionTally, Score, score_file
from harness.scoring.score import with_ks
from harness.scoring.tally import slim, tally

MAX_QUESTION_ROWS = 500
"""Questions listed one by one for each run and benchmark."""


@dataclass(frozen=True, slots=True)
class ScoredBenchmark:
    """One benchmark of one run. score: None before `harness score`; questions: its grades, per question, of which the
    first `MAX_QUESTION_ROWS` are shown and have their texts.

    withheld: nothing of its questions, answers and samples may be shown in what is published.
    """

    name: str
    record: BenchmarkRecord
    score: Score | None
    questions: tuple[QuestionTally, ...]
    withheld: bool


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """One run. label: its folder's name, with as much of the path as tells it from the other runs of the report.

    history: what its log says.
    """

    label: str
    manifest: Manifest
    benchmarks: dict[str, ScoredBenchmark]
    history: History


def read_runs(folders: Sequence[RunFolder], *, show_withheld: bool = False, ks: Sequence[int] = ()) -> list[ScoredRun]:
    """The runs in the order given. show_withheld: show also what a card asks to keep out of what is published.

    ks: see `report`.

    Raises `StoreError` for a damaged manifest, scores, questions or grades file.
    """
    runs: list[ScoredRun] = []
    for label, folder in zip(labels(folders), folders, strict=True):
        manifest = Manifest.load(folder)
        benchmarks = {
            name: _benchmark(
                folder.benchmark(name),
                record,
                withheld=not (show_withheld or catalogue.may_publish(name, record.settings)),
                ks=ks,
                alone=len(folders) == 1,
            )
            for name, record in manifest.benchmarks.items()
        }
        runs.append(ScoredRun(label, manifest, _named_alike(benchmarks, runs), read_history(folder)))
    return runs


def _named_alike(benchmarks: dict[str, ScoredBenchmark], before: Sequence[ScoredRun]) -> dict[str, ScoredBenchmark]:
    """Another tool's set goes by the name of its file: where an earlier run has the same questions, by that one's."""
    earlier = {name: benchmark for run in reversed(before) for name, benchmark in run.benchmarks.items()}
    found = {}
    for name, benchmark in benchmarks.items():
        known = name
        if benchmark.record.imported and name not in earlier:
            same = (other for other, one in earlier.items() if _same_questions(benchmark, one))
            known = next((other for other in same if other not in benchmarks), name)
        found[known] = benchmark if known == name else _renamed(benchmark, known)
    return found


def _same_questions(one: ScoredBenchmark, other: ScoredBenchmark) -> bool:
    """Whether they share most of their questions."""
    ours, theirs = (
        {(item.question.question_id, item.question.row_digest) for item in benchmark.questions}
        for benchmark in (one, other)
    )
    return 2 * len(ours & theirs) > min(len(ours), len(theirs))


def _renamed(benchmark: ScoredBenchmark, name: str) -> ScoredBenchmark:
    return dataclasses.replace(
        benchmark,
        name=name,
        score=benchmark.score and msgspec.structs.replace(benchmark.score, benchmark=name),
        questions=tuple(
            dataclasses.replace(item, question=msgspec.structs.replace(item.question, benchmark=name))
            for item in benchmark.questions
        ),
    )


def _benchmark(
    folder: BenchmarkFolder, record: BenchmarkRecord, *, withheld: bool, ks: Sequence[int], alone: bool
) -> ScoredBenchmark:
    """alone: there is no other run whose questions must be told to be of the same rows."""
    score = score_file.read(folder)
    if score is None or not folder.questions.is_file() or not folder.grades.is_file():
        return ScoredBenchmark(folder.name, record, score, (), withheld)
    chosen = None if record.plan.question_ids is None else set(record.plan.question_ids)
    asked = (q for q in question_file.iterate(folder) if chosen is None or q.question_id in chosen)
    questions = [one if place < MAX_QUESTION_ROWS else slim(one, row=not alone) for place, one in enumerate(asked)]
    tallies = tally(questions, grade_file.read(folder), record.planned).questions if questions else ()
    if ks and tallies:
        score = with_ks(score, tallies, ks)
    return ScoredBenchmark(folder.name, record, score, tallies, withheld)
