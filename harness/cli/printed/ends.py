"""Records of how a run, a sweep or an export ended."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.generation.dispatch.retry import Cause
from harness.sweeps.rows import CellRow, MeanRow


class SampleCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Sample counts."""

    expected: int
    """Number of planned samples."""
    done: int
    """Number of samples on disk."""
    missing: int
    """Number of missing samples."""
    accepted_as_missing: int
    """Number of missing samples that can never succeed."""
    this_session: int
    """Number of samples finished in this session."""
    truncated_this_session: int
    """Number of samples finished in this session that were truncated by max_tokens."""


class SessionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one session of a run."""

    run: str
    """Run folder."""
    model: str
    """Name of the model."""
    exit_code: int
    """Exit code of the command."""
    complete: bool
    """Whether all planned samples are present."""
    samples: SampleCounts
    """Sample counts."""
    new_tokens: int
    """Completion tokens generated in this session, as reported by the servers."""
    seconds: float
    """Duration of the session, in seconds."""
    causes: list[Cause]
    """Reasons why samples are missing."""
    warnings: list[str]
    """Warnings to show with a score."""
    stopped: str
    """Why the session ended early; otherwise empty."""
    target_reached: str
    """Message saying that the `--target-error` target was reached; otherwise empty."""
    target_missed: str
    """Message saying that the `--target-error` target was not reached; empty if it was reached or no target is set."""


class SweepEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a sweep."""

    sweep: str
    """Name of the sweep."""
    folder: str
    """Sweep folder."""
    exit_code: int
    """Exit code of the command."""
    complete: bool
    """Whether all cells are complete and none failed."""
    cells: list[CellRow]
    """Rows of `table.csv`."""
    means: list[MeanRow]
    """Rows of `means.csv`; empty if the sweep file is not a suite."""


class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """An exported file."""

    path: str
    """File path."""
    records: int | None
    """Number of samples or results in the file; None if it contains neither."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """Exported files."""

    folder: str
    """Folder that contains the files."""
    files: list[ExportedFile]
    """Files that were written."""
    left_out: Mapping[str, Mapping[str, int]]
    """Number of samples that were not exported, by benchmark, then by reason."""
