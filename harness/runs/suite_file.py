"""What a sweep notes in a run's folder: its suite, its training step, and how its server differs from a plain one."""

from __future__ import annotations

import msgspec

from harness.core import codec
from harness.core.files import read_record, write_atomically
from harness.runs.layout import RunFolder

MAX_BYTES = 64 * 1024
"""Largest note that is read, in bytes."""


class SuiteNote(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep's note about one of its runs.

    source: URL of the published scores that the suite repeats; empty for a run outside a suite. conditions: settings of
    the server that no request carries, by the names in published scores: `attention_budget`, in tokens. step: the
    training step of the run's checkpoint; None for a model that is no checkpoint. curve: the name of the curve
    (accuracy over steps) that the step is a point of, without the benchmark; often empty. before: name of the run
    folder, beside this one, of the step before on the curve; empty without one. place: of the cell in the sweep's
    order. base: name of the run folder, beside this one, with which the sweep compares it; empty without one.
    """

    source: str = ""
    conditions: dict[str, str | int | float | bool] = {}
    step: int | None = None
    curve: str = ""
    before: str = ""
    place: int = 0
    base: str = ""


def read(folder: RunFolder) -> SuiteNote:
    """The note in a run's folder; an empty one where there is none. Raises `StoreError` for a damaged file."""
    path, remedy = folder.path / "suite.json", "Remove it, and run the sweep again."
    return read_record(path, SuiteNote, MAX_BYTES, what="a sweep's note about a run", remedy=remedy) or SuiteNote()


def write(folder: RunFolder, note: SuiteNote) -> None:
    """Write the note, if the folder has another one. Raises `StoreError` when the disk refuses."""
    if read(folder) != note:
        write_atomically(folder.path / "suite.json", codec.pretty(note))
