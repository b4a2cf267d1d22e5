"""A run opened for reading: its manifest, questions, samples, grades, manual verdicts and score.

Used by the viewer, `harness show`, audits, reports and exports. A file is read when one of its values is first needed,
and again after a `refresh` that finds it changed.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harness.core.errors import HarnessError, StoreError, UsageError, near_names
from harness.core.records import Grade, Key, Question, VerdictName
from harness.core.sanitize import visible
from harness.runs import grades as grade_file
from harness.runs import overrides as override_file
from harness.runs import questions as question_file
from harness.runs.grades import Opinion
from harness.runs.layout import BenchmarkFolder, RunFolder
from harness.runs.manifest import BenchmarkRecord, Manifest
from harness.runs.offsets import SampleOffsets
from harness.runs.overrides import Override
from harness.scoring.score import Score
from harness.scoring.tally import QuestionTally, tally
from harness.scoring.uncertainty import accuracy_of

if TYPE_CHECKING:
    from harness.benchmarks.prompts import Prompt

T = TypeVar("T")


Stamp = tuple[int, int, int]
"""Inode number, size and modification time of a file, used to detect changes; all zero: the file does not exist."""


def _stamp(path: Path) -> Stamp:
    """The state of the file at `path`."""
    try:
        state = path.stat()
    except OSError:
        return 0, 0, 0
    return state.st_ino, state.st_size, state.st_mtime_ns


class _Made(Generic[T]):
    """A value of an opened benchmark that is computed from one of its files (`file`) and kept until the file changes.

    empty: makes the value used for a damaged file, which is then listed in `problems`.
    """

    def __init__(self, file: str, make: Callable[[Any], T], empty: Callable[[], Any]) -> None:
        self.file, self._make, self._empty = file, make, empty
        self.__doc__ = make.__doc__

    def __get__(self, opened: OpenBenchmark, _owner: object = None) -> T:
        # A file that changes while it is being read is read again: `refresh` waits for the lock and sees the change.
        with opened._lock:
            if self not in opened._values:
                opened._values[self] = self._value(opened)
            value: T = opened._values[self]
            return value

    def _value(self, opened: OpenBenchmark) -> Any:
        if not opened.lenient:
            return self._make(opened)
        if any(opened._stamps[self.file]):
            try:
                return self._make(opened)
            except HarnessError as error:
                opened._problems[self.file] = str(error)
        return self._empty()


def _computed_from(file: str, empty: Callable[[], Any]) -> Callable[[Callable[[Any], T]], _Made[T]]:
    """Decorator of a method that computes a value from this file. For `empty`, see `_Made`."""
    return lambda make: _Made(file, make, empty)


class OpenBenchmark:
    """One benchmark of a run.

    lenient: a damaged file is listed in `problems` and counts as empty, like a missing file; otherwise, reading a value
    computed from it raises `StoreError`.
    """

    def __init__(self, folder: BenchmarkFolder, record: BenchmarkRecord, *, lenient: bool = False) -> None:
        self.folder, self.record, self.lenient = folder, record, lenient
        self._offsets = SampleOffsets(folder)
        self._stamps: dict[str, Stamp] = {}
        self._values: dict[_Made[Any], Any] = {}
        self._problems: dict[str, str] = {}
        self._lock = threading.RLock()
        self.refresh()

    def refresh(self) -> tuple[Stamp, ...]:
        """Forget the values of files that have changed. The result differs whenever a file has changed."""
        with self._lock:
            before, self._stamps = self._stamps, {name: _stamp(getattr(self.folder, name)) for name in _FILES}
            changed = {name for name, stamp in self._stamps.items() if before.get(name) != stamp}
            self._values = {made: value for made, value in self._values.items() if made.file not in changed}
            self._problems = {name: problem for name, problem in self._problems.items() if name not in changed}
            return tuple(self._stamps.values())

    def read_all(self) -> None:
        """Read every file that has changed, so that `problems` lists all damaged files."""
        _ = (self.score, self.questions, self.grades, self.overrides, self._opinions, self.offsets)

    @property
    def name(self) -> str:
        """The benchmark's true name."""
        return self.folder.name

    @property
    def problems(self) -> list[str]:
        """Files that could not be read, one sentence each."""
        return list(self._problems.values())

    # --- contents of its files ---
    def planned(self) -> Sequence[Question]:
        """The planned questions, packed in memory and read at each call. Raises `StoreError`."""
        return question_file.read_planned(self.folder, self.record)

    def graded(self) -> Sequence[Grade]:
        """The grader's grades in file order, packed in memory and read at each call. Raises `StoreError`."""
        return grade_file.read(self.folder)

    @_computed_from("questions", dict)
    def questions(self) -> dict[str, Question]:
        """Id → question, for the planned questions, in the order of the plan."""
        return {question.question_id: question for question in self.planned()}

    @_computed_from("questions", bool)
    def _has_its_questions(self) -> bool:
        """Whether the questions can be read; False if their file is missing or damaged (`lenient`)."""
        self.planned()
        return True

    @_computed_from("questions", dict)
    def _with_present_rules(self) -> Mapping[str, Question]:
        """Question id → the question with its card's current rules."""
        from harness.benchmarks.catalog import apply_card_rules  # few commands that open a run need the cards

        if self.record.imported:  # keeps the rules with which the file was read, as in a score
            return self.questions
        questions, _ = apply_card_rules(self.name, self.record.settings, list(self.questions.values()))
        return {question.question_id: question for question in questions}

    @_computed_from("grades", dict)
    def grades(self) -> dict[str, dict[int, Grade]]:
        """Question id → sample index → the grader's grade; empty if the benchmark is not scored."""
        grades: dict[str, dict[int, Grade]] = {}
        if self.folder.grades.exists():
            for grade in grade_file.read_file(self.folder.grades):
                grades.setdefault(grade.question_id, {}).setdefault(grade.sample_index, grade)
        return grades

    @_computed_from("overrides", list)
    def override_history(self) -> list[Override]:
        """All manual verdicts in the order they were given, including withdrawn ones."""
        return override_file.read(self.folder)

    @_computed_from("overrides", dict)
    def overrides(self) -> dict[Key, Override]:
        """The manual verdicts that count."""
        return override_file.latest_overrides(self.override_history)

    @_computed_from("opinions", dict)
    def _opinions(self) -> Mapping[Key, Sequence[Opinion]]:
        return grade_file.opinions_by_key(grade_file.read_opinions(self.folder))

    @_computed_from("samples", bool)
    def _are_placed(self) -> bool:
        self._offsets.refresh()
        return True

    @_computed_from("scores", lambda: None)
    def stored_score(self) -> Score | None:
        """The content of `scores.json`."""
        return Score.load(self.folder)

    @property
    def score(self) -> Score | None:
        """The stored score; None if there is none. If the benchmark is lenient, also None if the run's questions cannot
        be read, because the score may then be for other questions.
        """
        score = self.stored_score
        return None if score is None or (self.lenient and not self._has_its_questions) else score

    @property
    def offsets(self) -> SampleOffsets:
        """The position of each sample in the journal, which is used to read samples."""
        _ = self._are_placed
        return self._offsets

    @property
    def n_stored(self) -> int:
        """Number of stored samples. The journal is read only if samples were stored after scoring."""
        score, stamps = self.score, self._stamps
        if score is not None and stamps["scores"][-1] >= stamps["samples"][-1]:
            return score.n_samples
        return self.offsets.n_samples

    @cached_property
    def prompt(self) -> Prompt | None:
        """The prompt that the run added to each question; None if its name is unknown here."""
        from harness.benchmarks import catalog, prompts  # few commands that open a run need its prompt

        name = str(self.record.identity.get("prompt"))
        with contextlib.suppress(HarnessError):
            card = catalog.load(self.name) if catalog.knows(self.name) else None
            return prompts.find_prompt(name, () if card is None else card.prompts)
        return None

    # --- values derived from them ---
    def question(self, question_id: str) -> Question:
        """Return the question with this id. Raises `UsageError` that suggests similar ids."""
        try:
            return self.questions[question_id]
        except KeyError:
            near = near_names(question_id, self.questions)
            raise UsageError(f"{self.name} has no question {visible(question_id, 100)!r}.{near}") from None

    def indices(self, question_id: str) -> list[int]:
        """Indices of the question's samples, graded or only stored."""
        return sorted(self.offsets.locations(question_id).keys() | self.grades.get(question_id, {}).keys())

    def grade(self, key: Key) -> Grade | None:
        """Return the grader's grade; None if the sample is not graded."""
        return self.grades.get(key.question_id, {}).get(key.sample_index)

    def as_graded(self, question: Question, grade: Grade | None) -> Question | None:
        """Return the question with the rules that were used for `grade`; None if these rules are no longer known.

        They are the rules with which the run started, or its card's current rules, whichever match the grade's `basis`.
        A sample without a grade gets the rules that the next scoring would use.
        """
        from harness.scoring.journal_grades import grade_basis  # lists of runs need no grader

        if grade is not None and grade_basis(question) == grade.basis:
            return question
        now = self._with_present_rules.get(question.question_id, question)
        return now if grade is None or grade_basis(now) == grade.basis else None

    def verdict(self, key: Key) -> VerdictName | None:
        """Return the verdict that counts: a person's, otherwise the grader's; None if there is neither."""
        override, grade = self.overrides.get(key), self.grade(key)
        return override.verdict if override is not None else None if grade is None else grade.verdict

    def disputing_graders(self, key: Key) -> tuple[str, ...]:
        """Second graders that contradict the grade."""
        grade = self.grade(key)
        opinions = () if grade is None else self._opinions.get(key, ())
        right = grade is not None and grade.verdict == "correct"
        return tuple(opinion.grader for opinion in opinions if opinion.correct not in (None, right))

    def override_sentence(self) -> str:
        """A sentence about the manual verdicts, with the resulting accuracy; empty if there are none."""
        if not self.overrides:
            return ""
        graded, corrected = self.tallies(overridden=False), self.tallies(overridden=True)
        numbers = override_file.count_corrected((grade for item in graded for grade in item.grades), self.overrides)
        as_graded, with_them = accuracy_of(graded), accuracy_of(corrected)
        n_open = sum(item.undecided for item in corrected)
        return numbers.sentence(as_graded and as_graded.value, with_them and with_them.value, n_open)

    def all_grades(self, *, overridden: bool) -> list[Grade]:
        """All grades; if `overridden`, with a person's verdicts in place of the grader's."""
        grades = [grade for samples in self.grades.values() for grade in samples.values()]
        return [*override_file.apply(grades, self.overrides)] if overridden else grades

    def tallies(self, *, overridden: bool) -> Sequence[QuestionTally]:
        """Return the questions with the grades that a score covers; empty if there are no questions.

        overridden: whether manual verdicts count.
        """
        if not self.questions:
            return ()
        grades = self.all_grades(overridden=overridden)
        return tally(list(self.questions.values()), grades, self.record.planned).questions


_FILES = ("scores", "overrides", "questions", "grades", "opinions", "samples")
"""The files of a benchmark, by their names in `BenchmarkFolder`."""


class OpenRun:
    """One run. `problem`: why its manifest cannot be read; otherwise empty. A run with a problem has no benchmarks."""

    def __init__(self, label: str, folder: RunFolder) -> None:
        self.label, self.folder = label, folder
        self.manifest: Manifest | None = None
        self.benchmarks: dict[str, OpenBenchmark] = {}
        self.problem = ""
        self._stamp: Stamp | None = None
        self._lock = threading.Lock()

    @classmethod
    def of(cls, folder: RunFolder, label: str) -> OpenRun:
        """Open a run. Raises `StoreError` if its manifest cannot be read."""
        run = cls(label, folder)
        run.refresh()
        if run.problem:
            raise StoreError(run.problem)
        return run

    def refresh(self) -> None:
        """Read the manifest if it has changed; benchmarks that were open stay open."""
        with self._lock:
            stamp = _stamp(self.folder.manifest)
            if stamp == self._stamp:
                return
            self._stamp, self.manifest, self.problem = stamp, None, ""
            if any(stamp):
                try:
                    self.manifest = Manifest.load(self.folder)
                except HarnessError as error:
                    self.problem = str(error)
            records = {} if self.manifest is None else self.manifest.benchmarks
            opened = self.benchmarks
            self.benchmarks = {
                name: opened[name]
                if name in opened and opened[name].record == record
                else OpenBenchmark(self.folder.benchmark(name), record, lenient=True)
                for name, record in records.items()
            }

    def benchmark(self, name: str) -> OpenBenchmark:
        """Return the benchmark after reading what has changed. Raises `UsageError` that suggests similar names for an
        unknown benchmark, and `StoreError` if the run cannot be read.
        """
        self.refresh()
        if self.problem:
            raise StoreError(self.problem)
        if name not in self.benchmarks:
            near = near_names(name, self.benchmarks)
            raise UsageError(f"run {self.label} does not include the benchmark {visible(name, 100)!r}.{near}")
        benchmark = self.benchmarks[name]
        benchmark.refresh()
        benchmark.read_all()
        return benchmark
