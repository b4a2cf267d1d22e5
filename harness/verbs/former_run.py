"""Finds the latest scored run of a benchmark in a folder of results, from which a plan may start."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.benchmarks import catalogue
from harness.benchmarks import questions as question_sets
from harness.core.errors import StoreError, UsageError, option
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.reports.scored import read_runs
from harness.runs import Manifest, RunFolder, questions
from harness.runs.layout import readable, runs_in
from harness.scoring import Score
from harness.verbs.again import options_again
from harness.verbs.known_questions import known_as


def runs_of(benchmark: str, results: Path) -> list[RunFolder]:
    """The runs of this benchmark in the folder `results`."""
    return [folder for folder in runs_in(results) if folder.benchmark(benchmark).path.is_dir()]


def former_run(benchmark: str, results: Path, file: str = "") -> RunFolder | None:
    """The run in the folder `results` with the latest scores of this benchmark, among runs whose score has a sampling
    error (they have several samples of a question) and whose questions are known to be the benchmark's (`known_as`).

    file: a file of questions without a card, which has the name `benchmark`; the run has asked exactly its questions.
    None if no run has its questions. Raises `StoreError` if runs of it exist but none is scored, `UsageError` if every
    scored run has one sample of each question.
    """
    of_it = _runs_of_file(file, benchmark, results) if file else _runs_with_its_questions(benchmark, results)
    with_scores = [folder for folder in of_it if folder.benchmark(benchmark).scores.is_file()]
    latest = sorted(with_scores, key=lambda folder: folder.benchmark(benchmark).scores.stat().st_mtime, reverse=True)
    for folder in latest:
        for run in read_runs([folder]):
            score = run.benchmarks[benchmark].score if benchmark in run.benchmarks else None
            if score is not None and score.sampling_error is not None:
                return folder
    name = visible(benchmark, 80)
    if latest:
        raise UsageError(f"no scored run of {name} in {results} shows a spread. {no_spread(latest[0], benchmark)}")
    if of_it:
        raise StoreError(f"{of_it[0].path} is a run of {name} but is not scored: run harness score {of_it[0].path}")
    return None


def _runs_with_its_questions(benchmark: str, results: Path) -> list[RunFolder]:
    """The runs of this benchmark whose questions are known to be the benchmark's."""
    runs = readable(runs_of(benchmark, results), lambda folder: _has_its_questions(folder, benchmark))
    return [folder for folder, has_them in runs if has_them]


def _runs_of_file(file: str, benchmark: str, results: Path) -> list[RunFolder]:
    """The runs of all questions that the file has now."""
    of_name = runs_of(benchmark, results)
    if not of_name:  # A large file is not read in vain.
        return []
    try:
        rows = question_sets.build(catalogue.load_or_make(file)).rows_digest
    except UsageError:  # It takes options of `harness run` to read this file, and its runs are found by their folders.
        return []
    return [folder for folder, own in readable(of_name, lambda folder: _rows_of(folder, benchmark)) if own == rows]


def _rows_of(folder: RunFolder, benchmark: str) -> str | None:
    """The checksum of all rows of the run's data; None if it has asked only some of them, or if none is recorded."""
    record = Manifest.load(folder).benchmarks.get(benchmark)
    # A run with `--limit` notes the checksum of all rows, but has the spread of its part only.
    if record is None or record.plan.question_ids is not None:
        return None
    note = record.settings.get(questions.MADE)
    rows = note.get("rows_digest") if isinstance(note, Mapping) else None
    return rows if isinstance(rows, str) else None


def _has_its_questions(folder: RunFolder, benchmark: str) -> bool:
    """Whether the run may have the benchmark's questions: a file of the user may have only its name."""
    record = Manifest.load(folder).benchmarks.get(benchmark)
    if record is None:
        return False
    planned = questions.read_planned(folder.benchmark(benchmark), record)
    return known_as(benchmark, record, planned) is not None


def no_spread(run: RunFolder, benchmark: str) -> str:
    """The error about a scored run that has one sample of each question, with the command that takes more.

    benchmark: its name in the run, whose manifest tells whether the questions are the user's own data.
    """
    manifest, name = Manifest.load(run), visible(benchmark, 80)
    record = manifest.benchmarks[benchmark]
    again = options_again(msgspec.structs.replace(manifest, benchmarks={benchmark: record}))
    # The samples of another tool have no command to repeat.
    options = again[0] if again else {"benchmarks": [f"{benchmark}:1"]}
    n = 2 if record.imported else max(2, record.plan.samples)
    words = [shlex.quote(f"{text.rpartition(':')[0]}:{n}") for text in options.get("benchmarks", ())]
    words += [option("run.data", str(options["data"]))] if "data" in options else []
    words += [] if "benchmarks" in options else [option("run.samples", n)]
    command = f"harness run {' '.join(words)} …"
    if record.imported or record.plan.samples == 1:
        return (
            f"{name} of {run.path} has one sample of each question, which shows no spread. Take two and score them: "
            f"{command} && harness score results/…"
        )
    score, folder = Score.load(run.benchmark(benchmark)), shlex.quote(visible(str(run.path), 200))
    out = option("run.out", str(run.path))
    rounds = count_noun(0 if score is None or score.partial else score.rounds, "complete round")
    return (
        f"{name} of {run.path} is unfinished ({rounds} of {n}), and two rounds show a spread. The command that began "
        f"the run completes it; score it again then: {command} {out} && harness score {folder}"
    )
