"""Reads the scores, questions and grades of run folders for a report, and the sessions and failed requests from their
logs; nothing is written. Untrusted text in a log is made inert and truncated.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from harness.core.errors import StoreError
from harness.core.number_text import count_noun, is_are
from harness.core.records import Question
from harness.core.sanitize import visible
from harness.runs import sweep_cell
from harness.runs.journal import stored_keys
from harness.runs.layout import RunFolder, labels, readable
from harness.runs.log_events import LogEvent, log_events
from harness.runs.manifest import BenchmarkRecord, Manifest
from harness.runs.merging import unjoined
from harness.runs.missing import KeySet
from harness.runs.sweep_cell import JOIN, names_in_sweep
from harness.scoring.judging import rubric_of
from harness.scoring.run_reader import OpenBenchmark
from harness.scoring.score import Score, warned
from harness.scoring.tally import QuestionTally, slim, tally


@dataclass(frozen=True, slots=True)
class ScoredBenchmark:
    """One benchmark of one run.

    score: None before `harness score`. questions: its grades by question, without texts.
    known_as: the name under which scores of these questions are published: `name`, or a card's name if a user's file
    contains that card's questions. None: a file with a card's name contains different questions. n_ungraded: number of
    planned samples that were stored after the last scoring, here or in a shard, so the score does not cover them.
    rubric: the user's text that a judge used to decide; empty without one.
    """

    name: str
    record: BenchmarkRecord
    score: Score | None
    questions: tuple[QuestionTally, ...]
    known_as: str | None
    n_ungraded: int = 0
    rubric: str = ""


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """One run.

    folder: its files. label: the folder's name, with as much of the path as needed to distinguish it from the other
    runs. history: what its log records. suite: the note of the sweep that made it. is_sampling: whether a process on
    this host is currently adding samples. remarks: sentences that apply to all scores of the run. sweep: the folder of
    the sweep that names the run's benchmark; None if the name is from the run's files.
    """

    folder: RunFolder
    label: str
    manifest: Manifest
    benchmarks: dict[str, ScoredBenchmark]
    history: RunHistory
    suite: sweep_cell.SuiteNote = field(default_factory=sweep_cell.SuiteNote)
    is_sampling: bool = False
    remarks: tuple[str, ...] = ()
    sweep: Path | None = None

    @property
    def scores(self) -> list[Score]:
        """The scores of the run's scored benchmarks."""
        return [benchmark.score for benchmark in self.benchmarks.values() if benchmark.score is not None]

    def row(self, benchmark: str) -> str:
        """The run's name in a table with benchmarks as columns; for a sweep's cell, without the benchmark at its
        end.
        """
        return self.label if self.sweep is None else self.label.removesuffix(f"{JOIN}{benchmark}")

    def stored_name(self, benchmark: ScoredBenchmark) -> str:
        """The benchmark's name in the run's files, because a comparison may have renamed it."""
        stored = (name for name, record in self.manifest.benchmarks.items() if record is benchmark.record)
        return next(stored, benchmark.name)


KnownAs: TypeAlias = Callable[[str, BenchmarkRecord, Sequence[Question]], str | None]
"""A function (benchmark's name in a run, its record, its questions) → the name under which scores of these questions
are published; None if the card with that name has different questions.
"""


Remarks: TypeAlias = Callable[[RunFolder], Sequence[str]]
"""A function that returns sentences about all scores of a run, for example that its model's files have changed."""


def read_runs(
    folders: Sequence[RunFolder],
    *,
    known_as: KnownAs | None = None,
    remarks: Remarks | None = None,
    named_by_sweep: bool = False,
) -> list[ScoredRun]:
    """Read the scores, questions and grades of runs, in the order given.

    known_as: without it, scores are assumed to be published under the benchmark's own name. named_by_sweep: the
    benchmark of a sweep's cell gets its name in the sweep, so that it matches other runs. A damaged run that was found
    among others is left out (`readable`). Raises `StoreError` for a damaged manifest, scores, questions or grades file
    of any other run.
    """
    runs: list[ScoredRun] = []
    names_shown = dict(zip(folders, labels(folders), strict=True))

    def read(folder: RunFolder) -> ScoredRun:
        """Read one run. The runs before it determine how its benchmarks are named (`_named_alike`)."""
        manifest, n_unjoined = Manifest.load(folder), unjoined(folder)
        benchmarks = {
            name: _benchmark(
                OpenBenchmark(folder.benchmark(name), record),
                alone=len(folders) == 1,
                known_as=known_as,
                n_unjoined=n_unjoined.get(name, 0),
            )
            for name, record in manifest.benchmarks.items()
        }
        names = names_in_sweep(folder, manifest.benchmarks) if named_by_sweep else {}
        sweep = folder.path.parent if names else None
        named = _named_alike(benchmarks, names, sweep, runs)
        is_sampling = any(item.n_ungraded for item in named.values()) and folder.is_active()
        return ScoredRun(
            folder=folder,
            label=names_shown[folder],
            manifest=manifest,
            benchmarks=named,
            history=read_history(folder),
            suite=sweep_cell.read_note(folder),
            is_sampling=is_sampling,
            remarks=tuple(remarks(folder)) if remarks else (),
            sweep=sweep,
        )

    for _, run in readable(folders, read):
        runs.append(run)
    return runs


def read_without_grades(folder: RunFolder) -> ScoredRun:
    """The run with its scores, log and sweep note, but without questions and grades, which is fast for a large run.

    Raises `StoreError` for a damaged manifest, scores file or note.
    """
    manifest = Manifest.load(folder)
    opened = [OpenBenchmark(folder.benchmark(name), record) for name, record in manifest.benchmarks.items()]
    benchmarks = {
        each.name: ScoredBenchmark(each.name, each.record, each.score, (), known_as=each.name) for each in opened
    }
    (label,) = labels([folder])
    return ScoredRun(folder, label, manifest, benchmarks, read_history(folder), sweep_cell.read_note(folder))


def counted_questions(run: ScoredRun, benchmark: ScoredBenchmark) -> tuple[QuestionTally, ...]:
    """The counted questions of a scored benchmark.

    Raises `StoreError` if the benchmark is not scored, or if samples were stored after the scoring. While a run is
    being sampled, new samples arrive all the time, so they are left out instead.
    """
    if benchmark.score is None or not benchmark.questions:
        raise StoreError(
            f"{visible(benchmark.name, 80)} of {visible(run.label, 80)} has not been scored; run `harness score` first."
        )
    if benchmark.n_ungraded and not run.is_sampling:
        raise StoreError(
            f"{visible(benchmark.name, 80)} of {visible(run.label, 80)} was scored before its last "
            f"{count_noun(benchmark.n_ungraded, 'sample')} {'was' if benchmark.n_ungraded == 1 else 'were'} stored; "
            "run `harness score` again first."
        )
    return benchmark.questions


def _named_alike(
    benchmarks: dict[str, ScoredBenchmark],
    names: Mapping[str, str],
    sweep: Path | None,
    before: Sequence[ScoredRun],
) -> dict[str, ScoredBenchmark]:
    """The benchmarks of a run by the names that match the runs before it.

    This is the name in the sweep, otherwise the name in the run's files. If no earlier run has this name, the benchmark
    is renamed to an earlier run's benchmark with the same questions in two cases: for another tool's outputs, which are
    named after their file; and if a run outside a sweep uses a different name for the benchmark than the sweep. A cell
    is never renamed to another benchmark of its own sweep.

    benchmarks: by their names in the run's files. names: name in the run's files → name in the sweep. sweep: its
    folder; None if the run is not a cell. before: the runs that come earlier in the report.
    """
    # If several runs have a benchmark with the same name, the first of these runs in the report counts.
    earlier: dict[str, tuple[ScoredRun, ScoredBenchmark]] = {}
    for run in before:
        for name, benchmark in run.benchmarks.items():
            earlier.setdefault(name, (run, benchmark))

    def is_twin(stored: str, benchmark: ScoredBenchmark, earlier_name: str) -> bool:
        """Whether the benchmark may be given this name from an earlier run, and has the same questions."""
        run, twin = earlier[earlier_name]
        may_share = benchmark.record.imported or (sweep != run.sweep and stored == run.stored_name(twin))
        is_free = earlier_name == stored or earlier_name not in benchmarks
        return may_share and is_free and _same_questions(benchmark, twin)

    renamed = {}
    for stored, benchmark in benchmarks.items():
        name = names.get(stored, stored)
        if name not in earlier:
            name = next((twin for twin in earlier if is_twin(stored, benchmark, twin)), name)
        renamed[name] = benchmark if name == stored else _rename(benchmark, name)
    return renamed


def _same_questions(first: ScoredBenchmark, second: ScoredBenchmark) -> bool:
    """Whether the two share more than half of the questions of the smaller benchmark."""
    ours, theirs = (
        {(item.question.question_id, item.question.row_digest) for item in benchmark.questions}
        for benchmark in (first, second)
    )
    return 2 * len(ours & theirs) > min(len(ours), len(theirs))


def _rename(benchmark: ScoredBenchmark, name: str) -> ScoredBenchmark:
    """A copy of the scored benchmark under another name."""
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
    opened: OpenBenchmark,
    *,
    alone: bool,
    known_as: KnownAs | None,
    n_unjoined: int,
) -> ScoredBenchmark:
    """One benchmark of one run.

    alone: whether the report has no other run, so the digests that pair questions of two runs are not kept. known_as:
    as in `read_runs`. n_unjoined: number of samples that are only in the run's shards.
    """
    folder, record, score = opened.folder, opened.record, opened.score
    planned = () if score is None else opened.planned()
    if score is None or not folder.grades.exists():
        return ScoredBenchmark(folder.name, record, score, (), folder.name)
    questions = [slim(question, row=not alone) for question in planned]
    grades = opened.graded()
    tallied = tally(questions, grades, record.planned) if questions else None
    tallies = () if tallied is None else tallied.questions
    n_ungraded = n_unjoined
    if tallied is not None and tallied.missing and not record.imported:
        graded = KeySet(grade.key for grade in grades)
        ungraded = KeySet(key for key in stored_keys(folder) if key not in graded)
        n_ungraded += record.plan.n_stored(ungraded, [question.question_id for question in questions])
    if n_gone := max(0, score.n_samples - len(grades)):
        gone = f"{count_noun(n_gone, 'grade')} of this score {is_are(n_gone)} missing from grades.jsonl"
        gone += ": score the run again"
        score = msgspec.structs.replace(score, warnings=(*warned("journal", [gone]), *score.warnings))
    elif n_ungraded:
        n = count_noun(n_ungraded, "sample")
        later = f"{n} stored since the run was last scored {is_are(n_ungraded)} not included in this score"
        score = msgspec.structs.replace(score, warnings=(*warned("stored since", [later]), *score.warnings))
    known_name = known_as(folder.name, record, planned) if known_as else folder.name
    rubric = rubric_of(folder, grades) if score.judge_errors is not None else ""
    return ScoredBenchmark(folder.name, record, score, tallies, known_name, n_ungraded, rubric)


# ---- the log

MAX_CAUSES = 200
"""Largest number of causes of failure that a report lists."""

MAX_MESSAGE_CHARS = 200
"""Maximum length of the message of a failed request, or of the reason for stopping; longer ones are truncated."""

MAX_WARNINGS = 100
"""Largest number of different warnings; only the first ones are kept."""

MAX_WARNING_CHARS = 1_000
"""Maximum length of a warning; longer ones are truncated."""


@dataclass(slots=True)
class Failures:
    """The failed requests with the same endpoint, kind and status. message: the message of the latest one."""

    endpoint: str
    kind: str
    status: int | None
    count: int = 0
    message: str = ""


@dataclass(slots=True)
class RunHistory:
    """What a run's log records.

    sessions: number of starts. unfinished: sessions without an end (killed, or still running). retries: number of
    repeated requests. failures: the most frequent cause first. stopped: why the last session ended early. warnings:
    distinct warnings in the order of their first occurrence. spent: numbers of tokens billed to the ended sessions, by
    their names in the log. notes: note of the sessions on replies → number of replies.
    """

    sessions: int = 0
    unfinished: int = 0
    retries: int = 0
    stopped: str = ""
    failures: list[Failures] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    spent: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


_NAMES = ("session_started", "session_ended", "request_failed", "warning")
"""The log events that a history is based on."""


class _Event(LogEvent, frozen=True):
    """The fields of log lines that a history uses."""

    endpoint: str = ""
    kind: str = ""
    status: int | None = None
    message: str = ""
    retries: int = 0
    stopped: Any = ""
    spent: dict[str, int] = {}  # noqa: RUF012 - frozen
    notes: dict[str, int] = {}  # noqa: RUF012 - frozen


def read_history(folder: RunFolder) -> RunHistory:
    """The history of a run; empty if it has no log. Damaged lines are skipped."""
    history = RunHistory()
    causes: dict[tuple[str, str, int | None], Failures] = {}
    n_ended = 0
    for event in log_events(folder.logs(), _Event, *_NAMES):
        match event.event:
            case "session_started":
                history.sessions += 1
                history.stopped = ""
            case "session_ended":
                n_ended += 1
                history.retries += event.retries
                history.spent.update(event.spent)
                history.notes.update(event.notes)
                history.stopped = visible(str(event.stopped or ""), MAX_MESSAGE_CHARS)
            case "warning":
                warning = visible(event.message, MAX_WARNING_CHARS)
                if warning and warning not in history.warnings and len(history.warnings) < MAX_WARNINGS:
                    history.warnings.append(warning)
            case "request_failed":
                key = (event.endpoint, event.kind, event.status)
                # A known cause is still counted after the list is full.
                if key in causes or len(causes) < MAX_CAUSES:
                    cause = causes.setdefault(key, Failures(*key))
                    cause.count += 1
                    cause.message = visible(event.message, MAX_MESSAGE_CHARS)
    history.unfinished = max(0, history.sessions - n_ended)
    history.failures = sorted(causes.values(), key=lambda cause: (-cause.count, cause.endpoint, cause.kind))
    return history
