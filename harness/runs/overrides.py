"""The file `overrides.jsonl`: verdicts that a person corrected, each with name, time and reason. Only appended to.

The grader's grades stay unchanged; code that counts an override also shows the number without it.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from harness.core.errors import StoreError, UsageError
from harness.core.number_text import count_noun, is_are
from harness.core.records import SCHEMA_VERSION, Grade, Key, SampleRecord, VerdictName
from harness.core.sanitize import quoted
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import append_line, line, read_appended

MAX_WHY_CHARS = 2_000
"""Maximum number of characters in the reason for an override."""

MAX_WHO_CHARS = 100
"""Maximum number of characters in a person's name."""

REMEDY = "Correct the line, or remove it."
"""The advice for a damaged line in a file written by people."""


class Override(SampleRecord, frozen=True, kw_only=True):
    """A person's verdict on one sample. If a sample has more than one line, the last line takes precedence."""

    verdict: VerdictName | None
    """The verdict; None withdraws an earlier verdict."""
    graded: VerdictName | None
    """The grader's verdict at that time; None if the sample had not been graded yet."""
    who: str
    """The person who gave the verdict."""
    when: str
    """Time of the verdict (UTC, ISO 8601)."""
    why: str
    """The reason."""
    points: tuple[float, float] | msgspec.UnsetType = msgspec.UNSET
    """Points awarded by that person, and maximum points; absent unless a judge awards points."""
    schema: int = SCHEMA_VERSION
    """Version of this format."""


def correct(
    folder: BenchmarkFolder,
    key: Key,
    verdict: VerdictName | None,
    *,
    graded: VerdictName | None,
    who: str,
    why: str,
    points: tuple[float, float] | msgspec.UnsetType = msgspec.UNSET,
) -> None:
    """Store a person's verdict on the sample `key`, with the current time; None withdraws the earlier one.

    graded: the grader's verdict. points: as in `Override`. Raises `UsageError` if `who` or `why` is empty or too long,
    `StoreError` if the disk write fails.
    """
    if not why.strip() or len(why) > MAX_WHY_CHARS:
        raise UsageError(f"a manual verdict must have a reason of 1 to {MAX_WHY_CHARS} characters.")
    if not who.strip() or len(who) > MAX_WHO_CHARS:
        raise UsageError(f"a manual verdict must include its author's name (1 to {MAX_WHO_CHARS} characters).")
    override = Override(
        benchmark=folder.name,
        question_id=key.question_id,
        sample_index=key.sample_index,
        verdict=verdict,
        graded=graded,
        who=who.strip(),
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        why=why.strip(),
        points=points,
    )
    append(folder, override)


def this_user() -> str:
    """The name of this machine's user; empty if there is none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # The user id may have no name, which is common in containers.
        return ""


def append(folder: BenchmarkFolder, override: Override) -> None:
    """Store `override`, on disk when this returns. Raises `StoreError` if the disk write fails."""
    append_line(folder.overrides, line(override))


def read(folder: BenchmarkFolder) -> list[Override]:
    """All overrides, including replaced and withdrawn ones, in order; empty if there is no file. Raises `StoreError`
    for a damaged or newer file.
    """
    overrides = read_appended(folder.overrides, Override, REMEDY)
    for number, override in enumerate(overrides, 1):
        if not _is_time(override.when):
            raise StoreError(
                f"{folder.overrides}, correction {number}: `when` is {quoted(override.when)}; expected a time such as "
                f"2026-01-31T12:00:00+00:00. {REMEDY}"
            )
    return overrides


def _is_time(text: str) -> bool:
    """Whether the text is an ISO 8601 time in printable ASCII."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    # Python accepts any character between the date and the time, even one that reverses the text direction.
    return text.isascii() and text.isprintable()


def latest_overrides(overrides: Iterable[Override]) -> dict[Key, Override]:
    """The overrides in effect: the last one for each key, without withdrawn ones."""
    last = {override.key: override for override in overrides}
    return {key: override for key, override in last.items() if override.verdict is not None}


def apply(grades: Iterable[Grade], overrides: Mapping[Key, Override]) -> Iterator[Grade]:
    """The grades, with each verdict in `overrides` in place of the grader's and with the rule "override".

    A verdict on a grade with points gives all or none of them unless it states points itself.
    """
    for grade in grades:
        override = overrides.get(grade.key)
        if override is None or override.verdict is None:
            yield grade
        else:
            points = override.points
            if points is msgspec.UNSET and grade.points is not msgspec.UNSET:
                points = (grade.points[1] if override.verdict == "correct" else 0.0, grade.points[1])
            yield msgspec.structs.replace(grade, verdict=override.verdict, rule="override", points=points)


class Corrected(NamedTuple):
    """How many graded samples a person judged, and how many of them differently from the grader."""

    n_judged: int
    n_differing: int

    def sentence(self, accuracy: float | None, corrected: float | None, n_open: int) -> str:
        """The sentence next to a score. accuracy: with the grader's verdicts. corrected: with the manual verdicts
        instead. None: unknown. n_open: samples that are undecided even with these verdicts and count as wrong.
        """
        differing = f"{self.n_differing:,}" if self.n_differing else "none"
        counts = "counts" if n_open == 1 else "count"
        still = (
            f"; {count_noun(n_open, 'sample')} {is_are(n_open)} still undecided and {counts} as wrong" if n_open else ""
        )
        return (
            f"{count_noun(self.n_judged, 'sample')} judged by hand, {differing} of them differently from the grader: "
            f"the accuracy is {_percent(corrected)} with these verdicts and "
            f"{_percent(accuracy)} with the grader's{still}"
        )


def count_corrected(grades: Iterable[Grade], overrides: Mapping[Key, Override]) -> Corrected:
    """Count the overrides of `grades`, and those that differ from the grade in the verdict or in the points."""
    graded = [grade for grade in grades if grade.key in overrides]
    pairs = zip(apply(graded, overrides), graded, strict=True)
    differing = [a for a, b in pairs if (a.verdict, a.counted) != (b.verdict, b.counted)]
    return Corrected(len(graded), len(differing))


def _percent(fraction: float | None) -> str:
    return "unknown" if fraction is None else f"{100 * fraction:.2f}%"
