"""What a report is made of: the scores, questions and grades of run folders, read only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.inert import quoted
from harness.core.records import SCHEMA_VERSION
from harness.runs import grades as grade_file
from harness.runs import questions as question_file
from harness.runs.layout import BenchmarkFolder, RunFolder
from harness.runs.manifest import BenchmarkRecord, Manifest
from harness.scoring import QuestionTally, Score, tally

MAX_SCORES_BYTES = 16 * 1024 * 1024
"""A larger scores.json is refused before it is read."""


@dataclass(frozen=True, slots=True)
class ScoredBenchmark:
    """One benchmark of one run. score: None before `harness score`; questions: its grades, per question."""

    name: str
    record: BenchmarkRecord
    score: Score | None
    questions: tuple[QuestionTally, ...]


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """One run. label: its folder's name, with as much of the path as tells it from the other runs of the report."""

    label: str
    manifest: Manifest
    benchmarks: dict[str, ScoredBenchmark]


def read_runs(folders: Sequence[RunFolder]) -> list[ScoredRun]:
    """The runs in the order given. Raises `StoreError` for a damaged manifest, scores, questions or grades file."""
    runs = []
    for label, folder in zip(_labels(folders), folders, strict=True):
        manifest = Manifest.load(folder)
        benchmarks = {name: _benchmark(folder.benchmark(name), record) for name, record in manifest.benchmarks.items()}
        runs.append(ScoredRun(label, manifest, benchmarks))
    return runs


def _benchmark(folder: BenchmarkFolder, record: BenchmarkRecord) -> ScoredBenchmark:
    score = _score(folder)
    if score is None or not folder.questions.is_file() or not folder.grades.is_file():
        return ScoredBenchmark(folder.name, record, score, ())
    chosen = None if record.plan.question_ids is None else set(record.plan.question_ids)
    questions = [q for q in question_file.read(folder) if chosen is None or q.question_id in chosen]
    tallies = tally(questions, grade_file.read(folder), record.plan.samples).questions if questions else ()
    return ScoredBenchmark(folder.name, record, score, tallies)


def _score(folder: BenchmarkFolder) -> Score | None:
    path = folder.scores
    try:
        if path.stat().st_size > MAX_SCORES_BYTES:
            raise StoreError(f"{path} is larger than {MAX_SCORES_BYTES} bytes: it is no scores file of ours.")
        score = codec.decode(path.read_bytes(), Score)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error
    except codec.DecodeError as error:
        raise StoreError(f"{path} is no scores file ({quoted(str(error))}). Run `harness score` again.") from error
    if score.schema > SCHEMA_VERSION:
        raise StoreError(f"{path} has schema {score.schema}, from a newer harness. Run `harness score` again.")
    return score


def _labels(folders: Sequence[RunFolder]) -> list[str]:
    """The shortest tails of the paths that differ from each other."""
    paths = [folder.path.parts for folder in folders]
    for length in range(1, max((len(parts) for parts in paths), default=1) + 1):
        labels = ["/".join(parts[-length:]) for parts in paths]
        if len(set(labels)) == len(labels):
            return labels
    return [folder.path.name for folder in folders]
