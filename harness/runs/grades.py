"""The files of grades. `grades.jsonl`: one verdict per sample, replaced as a whole at the end of each grading.
`grades.partial.jsonl`: grades appended during a grading, so that it can continue after an interruption; then removed.
`grades.fresh.jsonl`: the same for a grading that does not reuse earlier grades; until it ends, only its own are reused.
`opinions.jsonl`: the verdicts of second graders.

Each line ends in its checksum (`record`). No reader accepts a damaged or altered line: `score` reports it and grades
the sample again; all other readers reject the file and report the line. Files of earlier versions have no checksums.
Opinions do not change verdicts; they show on which samples two graders disagree.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.core.errors import StoreError
from harness.core.files import open_untrusted, remove
from harness.core.number_text import count_noun, is_are
from harness.core.records import SCHEMA_VERSION, Grade, Key, SampleRecord
from harness.core.sanitize import visible
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import LineFile, iterate_lines, line, make_folder, read_appended, write_lines

MAX_NAME_CHARS = 120
"""Maximum length of a benchmark's name in a note."""

_REMEDY = "Run `harness score` to grade again."


def read(folder: BenchmarkFolder) -> Sequence[Grade]:
    """The grades in file order. Raises `StoreError` for a missing or damaged file."""
    return [*read_file(folder.grades)]


def read_file(path: Path, damaged: list[str] | None = None) -> Iterator[Grade]:
    """The grades in a file with the format of `grades.jsonl`, one at a time.

    damaged: receives a description of each damaged line, which is left out; None: a damaged line is also an error.
    Raises `StoreError` for a missing or damaged file.
    """
    return iterate_lines(path, Grade, _REMEDY, sealed=True, damaged=damaged)


def read_stored(folder: BenchmarkFolder, damaged: list[str]) -> Iterator[Grade]:
    """All grades that may be reused; those of an interrupted grading come last.

    damaged: receives a description of each line of `grades.jsonl` that is not a grade. If the file of an interrupted
    grading is damaged, none of it is reused.
    """
    if folder.grades.exists() and not folder.fresh_grades.exists():
        with contextlib.suppress(StoreError):  # Unreadable grades are recomputed.
            yield from read_file(folder.grades, damaged)
    with contextlib.suppress(StoreError):
        yield from read_appended(_partial_file(folder), Grade, _REMEDY, sealed=True)


def any_stored(folder: BenchmarkFolder) -> bool:
    """Whether there is a file of grades that may be reused."""
    return folder.grades.exists() or _partial_file(folder).exists()


def _partial_file(folder: BenchmarkFolder) -> Path:
    """The file of the grades of an interrupted grading, to which the next one appends."""
    return folder.fresh_grades if folder.fresh_grades.exists() else folder.partial_grades


def write_file(path: Path, grades: Iterable[Grade]) -> None:
    """Write a file in the format of `grades.jsonl`. Raises `StoreError`."""
    write_lines(path, grades, sealed=True)


def write(folder: BenchmarkFolder, grades: Iterable[Grade]) -> None:
    """Replace the grades with those of a completed grading. Raises `StoreError`."""
    write_file(folder.grades, grades)
    _forget_partial(folder)


def _forget_partial(folder: BenchmarkFolder) -> None:
    """Remove the grades of interrupted gradings. Raises `StoreError`."""
    for path in folder.partial_grades, folder.fresh_grades:
        remove(path)


class PartialGrades:
    """Appends grades to `grades.partial.jsonl` or `grades.fresh.jsonl`, which is created with the first grade.

    A context manager; a note on how many grades are stored is added to a Ctrl-C within the `with` block.
    """

    def __init__(self, folder: BenchmarkFolder, n_stored: int, *, fresh: bool = False) -> None:
        """n_stored: number of stored grades that are reused. fresh: whether the grading reuses none."""
        self._folder = folder
        self._n_stored = n_stored
        self._fresh = fresh
        self._file: LineFile | None = None
        self._path, self._size_before = folder.partial_grades, 0

    def __enter__(self) -> PartialGrades:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Close the file; on a Ctrl-C, add the note on what a repetition of the command would reuse."""
        if self._file is not None:
            self._file.close()
        if isinstance(error, KeyboardInterrupt):
            if self._file is not None:  # Read from the file, since the Ctrl-C may have come just after a write.
                with open_untrusted(self._path) as file:
                    self._n_stored += file.read().count(b"\n", self._size_before)
            name = visible(self._folder.name, MAX_NAME_CHARS)
            how = "without `fresh` continues" if self._fresh else "continues"
            if self._fresh and not self._n_stored:
                how = "starts over"
            n_stored = f"{count_noun(self._n_stored, 'grade')} {is_are(self._n_stored)} stored"
            error.add_note(f"{name}: {n_stored}; the same command {how}")

    def append(self, grades: Sequence[Grade]) -> None:
        """Append grades; they reach the disk soon, not immediately. Raises `StoreError`."""
        if not grades:
            return
        if self._file is None:
            make_folder(self._folder.path)
            if self._fresh:
                _forget_partial(self._folder)
            self._path = self._folder.fresh_grades if self._fresh else _partial_file(self._folder)
            # A power loss costs these grades, which can be recomputed; the end of the process does not.
            self._file = LineFile(self._path, durable=False)
            self._file.cut_torn_tail()
            self._size_before = self._file.size
        self._file.append(b"".join(line(grade, sealed=True) for grade in grades))


# ---- opinions of second graders


_OPINIONS_REMEDY = "Remove the file, and then run the second grader again."


class Opinion(SampleRecord, frozen=True, kw_only=True, gc=False):
    """One grader's opinion of one sample."""

    grader: str
    """Name and version of the grader."""
    correct: bool | None
    """Whether the answer is correct; None if the grader could not decide."""
    schema: int = SCHEMA_VERSION
    """Version of this format."""


def replace_opinions(folder: BenchmarkFolder, grader: str, verdicts: Mapping[Key, bool | None]) -> None:
    """Replace the stored opinions of `grader`; other graders' opinions are kept. Raises `StoreError`.

    A judge's opinions from earlier versions, whose grader begins with the version of the rules and a plus, are also
    replaced. verdicts: sample → whether the grader considers it correct; None: it cannot decide.
    """
    former = f"+{grader}"
    others = [o for o in read_opinions(folder) if o.grader != grader and not o.grader.endswith(former)]
    name = folder.name
    new = [
        Opinion(
            benchmark=name, question_id=key.question_id, sample_index=key.sample_index, grader=grader, correct=correct
        )
        for key, correct in verdicts.items()
    ]
    if others or new or folder.opinions.exists():
        write_lines(folder.opinions, [*others, *new])


def read_opinions(folder: BenchmarkFolder) -> list[Opinion]:
    """All opinions; empty if there is no file. Raises `StoreError` for a damaged or newer file."""
    return [*iterate_lines(folder.opinions, Opinion, _OPINIONS_REMEDY)] if folder.opinions.exists() else []


def opinions_by_key(opinions: Iterable[Opinion]) -> dict[Key, list[Opinion]]:
    """The opinions on each sample."""
    opinions_of = defaultdict(list)
    for opinion in opinions:
        opinions_of[opinion.key].append(opinion)
    return dict(opinions_of)
