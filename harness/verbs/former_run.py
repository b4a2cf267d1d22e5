"""Finds the latest scored run of a benchmark in a folder of results, from which a plan may start."""

from __future__ import annotations

from pathlib import Path

from harness.core.errors import StoreError, UsageError
from harness.core.inert import visible
from harness.runs import Manifest, RunFolder, questions
from harness.scoring import Score
from harness.verbs.known_questions import known_as


def runs_of(benchmark: str, results: Path) -> list[RunFolder]:
    """The runs of this benchmark in the folder `results`."""
    folders = [RunFolder(path.parent) for path in sorted(results.glob("*/manifest.json"))]
    return [folder for folder in folders if folder.benchmark(benchmark).path.is_dir()]


def former_run(benchmark: str, results: Path) -> RunFolder | None:
    """The run in the folder `results` with the latest scores of this benchmark, among runs whose score has a sampling
    error (they have several samples of a question) and whose questions are known to be the benchmark's (`known_as`).

    None if no run has its questions. Raises `StoreError` if runs of it exist but none is scored, `UsageError` if every
    scored run has one sample of each question.
    """
    of_it = [folder for folder in runs_of(benchmark, results) if _has_its_questions(folder, benchmark)]
    with_scores = [folder for folder in of_it if folder.benchmark(benchmark).scores.is_file()]
    latest = sorted(with_scores, key=lambda folder: folder.benchmark(benchmark).scores.stat().st_mtime, reverse=True)
    for folder in latest:
        score = Score.load(folder.benchmark(benchmark))
        if score is not None and score.sampling_error is not None:
            return folder
    name = visible(benchmark, 80)
    if latest:
        raise UsageError(f"every scored run of {name} in {results} has {no_spread(name)}")
    if of_it:
        raise StoreError(f"{of_it[0].path} is a run of {name} but is not scored: run harness score {of_it[0].path}")
    return None


def _has_its_questions(folder: RunFolder, benchmark: str) -> bool:
    """Whether the run may have the benchmark's questions: a file of the user may have only its name."""
    record = Manifest.load(folder).benchmarks.get(benchmark)
    if record is None:
        return False
    planned = questions.read_planned(folder.benchmark(benchmark), record)
    return known_as(benchmark, record, planned) is not None


def no_spread(name: str) -> str:
    """The end of an error about a run that has one sample of each question, with what to do."""
    return (
        f"one sample of each question, which shows no spread. Take two and score them: harness run {name}:2 … && "
        f"harness score results/…"
    )
