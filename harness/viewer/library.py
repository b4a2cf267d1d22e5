"""Runs opened for reading: every file is read once, and again when it has changed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from harness.core.errors import HarnessError, StoreError, UsageError, near_names
from harness.core.inert import visible
from harness.core.records import Grade, Key, Question, VerdictName
from harness.runs import grades as grade_file
from harness.runs import opinions as opinion_file
from harness.runs import overrides as override_file
from harness.runs import questions as question_file
from harness.runs import sample_labels
from harness.runs.layout import BenchmarkFolder, RunFolder, labels, runs_below
from harness.runs.manifest import BenchmarkRecord, Manifest
from harness.runs.opinions import Opinion
from harness.runs.overrides import Override
from harness.scoring import QuestionTally, Score
from harness.scoring.audit_order import audits
from harness.scoring.tally import tally
from harness.scoring.uncertainty import accuracy_of
from harness.viewer.offsets import SampleOffsets

if TYPE_CHECKING:
    from harness.benchmarks.prompts import Prompt

MAX_RUNS = 10_000
"""Largest number of run folders that are opened below the given folders."""

T = TypeVar("T")


class Stamp(NamedTuple):
    """Size, time and number of a file, by which two states of it are told apart; all zero: the file does not exist."""

    inode: int = 0
    size: int = 0
    modified_ns: int = 0

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Return the state of the file at `path`."""
        try:
            state = path.stat()
        except OSError:
            return cls()
        return cls(state.st_ino, state.st_size, state.st_mtime_ns)


class Remembered:
    """A cache of contents of files, each with the state of the file when it was read.

    `problems`: path → why it could not be read.
    """

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[Stamp, object]] = {}
        self.problems: dict[Path, str] = {}

    def read(self, path: Path, how: Callable[[], T], otherwise: T) -> T:
        """The result of `how()`, called again when the file at `path` has changed; `otherwise` if it is missing or
        damaged.
        """
        # The state is taken before the reading: a write during the reading then counts as a change at the next call.
        stamp = Stamp.of(path)
        entry = self._kept.get(path)
        if entry is None or entry[0] != stamp:
            self.problems.pop(path, None)
            value: object = otherwise
            if stamp != Stamp():
                try:
                    value = how()
                except HarnessError as error:
                    self.problems[path] = str(error)
            entry = self._kept[path] = (stamp, value)
        return entry[1]  # type: ignore[return-value]

    def stamps(self) -> tuple[Stamp, ...]:
        """Return the states that the files had when they were last read, one for each file read so far."""
        return tuple(stamp for stamp, _ in self._kept.values())


class OpenBenchmark:
    """One benchmark of a run. `refresh` first; the values hold until the next call."""

    def __init__(self, folder: BenchmarkFolder, record: BenchmarkRecord) -> None:
        self.folder = folder
        self.record = record
        self.offsets = SampleOffsets(folder)
        self.questions: dict[str, Question] = {}
        self.grades: Mapping[str, Mapping[int, Grade]] = {}
        self.overrides: Mapping[Key, Override] = {}
        self.audits: Mapping[Key, Override] = {}
        self.labels: Mapping[Key, Sequence[str]] = {}
        self.opinions: Mapping[Key, Sequence[Opinion]] = {}
        self.score: Score | None = None
        self.n_stored = 0
        self._all_overrides: list[Override] = []
        self._files = Remembered()
        self._sound = Remembered()
        self._continued = Remembered()
        self._lock = threading.Lock()
        self._present: Mapping[str, Question] | None = None

    @property
    def name(self) -> str:
        """The benchmark's true name."""
        return self.folder.name

    @cached_property
    def prompt(self) -> Prompt | None:
        """The prompt that the run added to each question; None if it is not known here by its name."""
        from harness.benchmarks import catalogue, prompts  # few commands that open a run need its prompt

        name = str(self.record.identity.get("prompt"))
        with contextlib.suppress(HarnessError):
            card = catalogue.load(self.name) if catalogue.knows(self.name) else None
            return prompts.find_prompt(name, () if card is None else card.prompts)
        return None

    @property
    def problems(self) -> list[str]:
        """Files that could not be read, a sentence each."""
        return list({**self._sound.problems, **self._files.problems}.values())

    @property
    def modified(self) -> float | None:
        """Unix time of the last write to the journal; None without a journal."""
        stamp = Stamp.of(self.folder.samples)
        return stamp.modified_ns / 1e9 if stamp.size else None

    def glance(self) -> None:
        """Read only what the overview of all runs needs: the score, the overrides, and the number of stored samples.

        The score stays None if the questions file is no longer the run's, because the score then is of other questions.
        """
        folder, files = self.folder, self._files
        with self._lock:
            score = files.read(folder.scores, lambda: Score.load(folder), None)
            if score is not None and not self._sound.read(folder.questions, self._has_its_questions, False):
                score = None
            self.score = score
            self._all_overrides = files.read(folder.overrides, lambda: override_file.read(folder), [])
            self.overrides = override_file.in_force(self._all_overrides)
            self.audits = audits(self._all_overrides)
            stamps = Stamp.of(folder.scores), Stamp.of(folder.samples)
            if score is not None and stamps[0].modified_ns >= stamps[1].modified_ns:
                self.n_stored = score.n_samples  # nothing was stored since, so the journal need not be read
            else:
                files.read(folder.samples, self._refresh_offsets, None)
                self.n_stored = self.offsets.n_samples

    def refresh(self) -> tuple[object, ...]:
        """Read what has changed. The returned value differs whenever a file has changed."""
        folder, files = self.folder, self._files
        self.glance()
        with self._lock:
            self.questions = files.read(folder.questions, self._read_questions, {})
            self._present = None
            self.grades = files.read(folder.grades, self._read_grades, {})
            self.opinions = files.read(folder.opinions, lambda: opinion_file.by_key(opinion_file.read(folder)), {})
            self.labels = files.read(folder.labels, lambda: sample_labels.in_force(sample_labels.read(folder)), {})
            files.read(folder.samples, self._refresh_offsets, None)
            self.n_stored = self.offsets.n_samples
            return files.stamps()

    def question(self, question_id: str) -> Question:
        """Return the question of this id. Raises `UsageError` with near ids."""
        try:
            return self.questions[question_id]
        except KeyError:
            near = near_names(question_id, self.questions)
            raise UsageError(f"{self.name} has no question {visible(question_id, 100)!r}.{near}") from None

    def grade(self, key: Key) -> Grade | None:
        """Return the grader's grade; None where the sample is not graded."""
        return self.grades.get(key.question_id, {}).get(key.sample_index)

    def as_graded(self, question: Question, grade: Grade | None) -> Question | None:
        """Return the question with the rules by which `grade` was made; None if these are not known any more.

        They are those with which the run began, or those that its card has now, whichever the grade's `basis` names.
        A sample without a grade has the rules by which the next score would grade it.
        """
        from harness.scoring.journal_grades import basis  # lists of runs need no grader

        if grade is not None and basis(question) == grade.basis:
            return question
        now = self._with_present_rules().get(question.question_id, question)
        return now if grade is None or basis(now) == grade.basis else None

    def _with_present_rules(self) -> Mapping[str, Question]:
        """Question id → the question with the rules that its card has now. The card is read once for each `refresh`."""
        from harness.benchmarks.catalogue import apply_card_rules  # few commands that open a run need cards

        if self.record.imported:  # the file keeps the rules with which it was read, as in a score
            return self.questions
        present = self._present
        if present is None:
            questions, _ = apply_card_rules(self.name, self.record.settings, list(self.questions.values()))
            present = self._present = {question.question_id: question for question in questions}
        return present

    def verdict(self, key: Key) -> VerdictName | None:
        """Return the verdict that counts: a person's, else the grader's; None where there is neither."""
        override = self.overrides.get(key)
        if override is not None:
            return override.verdict
        grade = self.grade(key)
        return None if grade is None else grade.verdict

    def disputed_by(self, key: Key) -> tuple[str, ...]:
        """Second graders that contradict the grade."""
        grade = self.grade(key)
        if grade is None:
            return ()
        right = grade.verdict == "correct"
        return tuple(
            opinion.grader
            for opinion in self.opinions.get(key, ())
            if opinion.correct is not None and opinion.correct != right
        )

    def by_hand(self) -> str:
        """A sentence on the verdicts by hand, with the accuracy that they give; empty without any."""
        if not self.overrides:
            return ""
        graded, corrected = self.tallies(overridden=False), self.tallies(overridden=True)
        numbers = override_file.count_corrected((grade for item in graded for grade in item.grades), self.overrides)
        if self.score is not None and self.score.audited is not None:
            # The verdicts of an unfinished audit, put in place of the grader's, estimate nothing.
            return f"{numbers.words}; the audited accuracy is {self.score.audited.words}"
        as_graded, with_them = accuracy_of(graded), accuracy_of(corrected)
        n_open = sum(item.undecided for item in corrected)
        return numbers.beside(as_graded and as_graded.value, with_them and with_them.value, n_open)

    def override_history(self) -> list[Override]:
        """Return all overrides in the order they were made, including withdrawn ones."""
        return list(self._all_overrides)

    def indices(self, question_id: str) -> list[int]:
        """Indices of the question's samples, graded or only stored."""
        return sorted(self.offsets.of(question_id).keys() | self.grades.get(question_id, {}).keys())

    def all_grades(self, *, overridden: bool) -> list[Grade]:
        """The grades of the planned questions; if `overridden`, with a person's verdicts in place of the grader's."""
        grades = [grade for samples in self.grades.values() for grade in samples.values()]
        return [*override_file.apply(grades, self.overrides)] if overridden else grades

    def tallies(self, *, overridden: bool, salvaged: bool = True) -> Sequence[QuestionTally]:
        """Return the questions with the grades that a score covers; empty without questions.

        overridden: whether verdicts corrected by hand count. salvaged: whether samples count that were continued after
        an interruption.
        """
        if not self.questions:
            return ()
        grades = self.all_grades(overridden=overridden)
        if not salvaged:
            no_keys: frozenset[Key] = frozenset()
            continued = self._continued.read(self.folder.samples, self._read_continued, no_keys)
            grades = [grade for grade in grades if grade.key not in continued]
        return tally(list(self.questions.values()), grades, self.record.planned).questions

    def _has_its_questions(self) -> bool:
        question_file.read_planned(self.folder, self.record)
        return True

    def _read_questions(self) -> dict[str, Question]:
        return {question.question_id: question for question in question_file.read_planned(self.folder, self.record)}

    def _read_grades(self) -> dict[str, dict[int, Grade]]:
        """Question id → sample index → grade."""
        grades: dict[str, dict[int, Grade]] = {}
        for grade in grade_file.read(self.folder):
            grades.setdefault(grade.question_id, {}).setdefault(grade.sample_index, grade)
        return grades

    def _read_continued(self) -> frozenset[Key]:
        """The keys of samples that were continued after an interruption."""
        return frozenset(key for key, _ in self.offsets.in_file_order() if self.offsets.read(key).salvaged_at)

    def _refresh_offsets(self) -> None:
        self.offsets.refresh()


class OpenRun:
    """One run. `problem`: why it cannot be opened, else empty; such a run has no benchmarks."""

    def __init__(self, label: str, folder: RunFolder) -> None:
        self.label = label
        self.folder = folder
        self.manifest: Manifest | None = None
        self.benchmarks: dict[str, OpenBenchmark] = {}
        self._files = Remembered()
        self._lock = threading.Lock()

    @property
    def problem(self) -> str:
        """Why the manifest cannot be read."""
        return next(iter(self._files.problems.values()), "")

    def refresh(self) -> None:
        """Read the manifest if it has changed; benchmarks that were open stay open."""
        with self._lock:
            self.manifest = self._files.read(self.folder.manifest, lambda: Manifest.load(self.folder), None)
            records = {} if self.manifest is None else self.manifest.benchmarks
            opened = self.benchmarks
            self.benchmarks = {
                name: opened[name]
                if name in opened and opened[name].record == record
                else OpenBenchmark(self.folder.benchmark(name), record)
                for name, record in records.items()
            }

    def benchmark(self, name: str) -> OpenBenchmark:
        """Return the benchmark after reading what has changed. Raises `UsageError` with near names for an unknown one,
        `StoreError` if the run cannot be read."""
        self.refresh()
        if self.problem:
            raise StoreError(self.problem)
        if name not in self.benchmarks:
            near = near_names(name, self.benchmarks)
            raise UsageError(f"run {self.label} has no benchmark {visible(name, 100)!r}.{near}")
        self.benchmarks[name].refresh()
        return self.benchmarks[name]


class Library:
    """All runs at or below the given paths; each `refresh` looks through the folders again."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = [path.absolute() for path in paths]
        self.runs: dict[str, OpenRun] = {}
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Find the runs. Raises `StoreError` when a path is neither a run nor a folder."""
        with self._lock:
            folders = list(dict.fromkeys(folder for path in self._paths for folder in _runs_at(path)))[:MAX_RUNS]
            named = {label: RunFolder(path) for label, path in zip(labels(_as_runs(folders)), folders, strict=True)}
            opened = {run.folder.path: run for run in self.runs.values()}
            self.runs = {}
            for label, folder in named.items():
                run = opened.get(folder.path) or OpenRun(label, folder)
                run.label = label
                self.runs[label] = run

    def run(self, label: str) -> OpenRun:
        """Return the run with that label. Raises `UsageError` with near labels."""
        if label not in self.runs:
            self.refresh()
        try:
            return self.runs[label]
        except KeyError:
            raise UsageError(f"there is no run {visible(label, 100)!r} here.{near_names(label, self.runs)}") from None


def _as_runs(paths: Sequence[Path]) -> list[RunFolder]:
    return [RunFolder(path) for path in paths]


def _runs_at(path: Path) -> list[Path]:
    """Return the run at `path`, else the runs up to two folders below it. Raises `StoreError`."""
    if (path / "manifest.json").is_file() or not path.is_dir():
        return [RunFolder.open(path).path]
    return [run.path for run in runs_below(path)]
