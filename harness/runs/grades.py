"""The files of grades. `grades.jsonl`: one verdict per sample, replaced as a whole at the end of each grading.
`grades.partial.jsonl`: grades appended while a grading goes on, so that an interrupted one continues; then removed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.core.errors import StoreError
from harness.core.files import disk_error
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.core.packed import Packed
from harness.core.records import Grade
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import LineFile, iterate_lines, line, make_folder, read_appended, write_lines
from harness.runs.survey import count_entries

MAX_NAME_CHARS = 120
"""Largest number of characters of a benchmark's name in a note."""

_REMEDY = "Run `harness score` to grade again."


def read(folder: BenchmarkFolder) -> Sequence[Grade]:
    """The grades in file order. Raises `StoreError` for a missing or damaged file."""
    return Packed(Grade, read_file(folder.grades))


def read_file(path: Path) -> Iterator[Grade]:
    """The grades in a file of the same form as `grades.jsonl`, one at a time.

    Raises `StoreError` for a missing or damaged file.
    """
    return iterate_lines(path, Grade, _REMEDY)


def read_stored(folder: BenchmarkFolder) -> Iterator[Grade]:
    """All grades that are stored, those of an interrupted grading last; what a damaged file holds is left out."""
    if folder.grades.exists():
        with contextlib.suppress(StoreError):  # Unreadable grades are made again.
            yield from read_file(folder.grades)
    with contextlib.suppress(StoreError):
        yield from read_appended(folder.partial_grades, Grade, _REMEDY)


def write(folder: BenchmarkFolder, grades: Iterable[Grade]) -> None:
    """Replace the grades by those of a grading that has ended. Raises `StoreError`."""
    write_lines(folder.grades, grades)
    try:
        folder.partial_grades.unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(folder.partial_grades, error) from error


class PartialGrades:
    """Appends grades to `grades.partial.jsonl`, which is made with the first of them.

    A context manager; a Ctrl-C within the `with` block gets a note that says how many grades are stored.
    """

    def __init__(self, folder: BenchmarkFolder, n_stored: int, *, keeps: bool) -> None:
        """n_stored: number of grades that are stored already and still valid. keeps: whether any will be appended."""
        self._folder = folder
        self._n_stored = n_stored
        self._keeps = keeps
        self._file: LineFile | None = None

    def __enter__(self) -> PartialGrades:
        return self

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if self._file is not None:
            self._file.close()
        if isinstance(error, KeyboardInterrupt):
            name, n_samples = visible(self._folder.name, MAX_NAME_CHARS), count_entries(self._folder)
            sentence = f"{self._n_stored:,} of {count_noun(n_samples, 'grade')} are stored; the same command continues"
            if not self._keeps:
                sentence = "no grade of this command is stored, since it grades all samples anew"
            error.add_note(f"{name}: {sentence}")

    def append(self, grades: Sequence[Grade]) -> None:
        """Append grades; on disk soon, not at once. Raises `StoreError`."""
        if not grades:
            return
        if self._file is None:
            make_folder(self._folder.path)
            # A loss of power costs these grades, which can be made again; the end of the process does not.
            self._file = LineFile(self._folder.partial_grades, durable=False)
        self._file.append(b"".join(map(line, grades)))
        self._n_stored += len(grades)
