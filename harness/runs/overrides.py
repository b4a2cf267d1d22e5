"""The file `overrides.jsonl`: verdicts that a person corrected, each with who, when and why. Only ever appended to.

The grades stay as the grader gave them; whoever counts an override says so beside the number without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from harness.core.errors import StoreError
from harness.core.inert import quoted
from harness.core.records import SCHEMA_VERSION, Grade, Key, Verdict
from harness.runs.jsonl import line, read_appended
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import append_line
from harness.runs.safe_open import make_folder

_REMEDY = "Correct the line, or remove it."


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict by hand on one sample; the last line of a key counts.

    verdict: None takes back what was said before. graded: the grader's verdict at that time, None before any grading.
    when: UTC, ISO 8601.
    """

    benchmark: str
    question_id: str
    sample_index: int
    verdict: Verdict | None
    graded: Verdict | None
    who: str
    when: str
    why: str
    schema: int = SCHEMA_VERSION

    @property
    def key(self) -> Key:
        """The sample that it is about."""
        return Key(self.question_id, self.sample_index)


def append(folder: BenchmarkFolder, override: Override) -> None:
    """Store `override`, on disk when this returns. Raises `StoreError` when the disk refuses."""
    make_folder(folder.path)
    append_line(folder.overrides, line(override))


def read(folder: BenchmarkFolder) -> list[Override]:
    """All that was ever said, in order; empty without a file. Raises `StoreError` for a damaged or newer file."""
    overrides = read_appended(folder.overrides, Override, _REMEDY)
    for number, override in enumerate(overrides, 1):
        if not _is_time(override.when):
            raise StoreError(
                f"{folder.overrides}, correction {number}: `when` is {quoted(override.when)}; expected a time such as "
                f"2026-01-31T12:00:00+00:00. {_REMEDY}"
            )
    return overrides


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def in_force(overrides: Iterable[Override]) -> dict[Key, Override]:
    """What holds now: the last word on each key, without those taken back."""
    last = {override.key: override for override in overrides}
    return {key: override for key, override in last.items() if override.verdict is not None}


def apply(grades: Iterable[Grade], overrides: Mapping[Key, Override]) -> Iterator[Grade]:
    """The grades with every verdict of `overrides` in its place; their rule is then "override"."""
    for grade in grades:
        override = overrides.get(grade.key)
        if override is None or override.verdict is None:
            yield grade
        else:
            yield msgspec.structs.replace(grade, verdict=override.verdict, rule="override")
