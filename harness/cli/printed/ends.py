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
    """Number of samples that are not on disk because they can never succeed."""
    this_session: int
    """Number of samples finished in this session."""
    truncated_this_session: int
    """Number of samples finished in this session that were truncated by max_tokens."""


class SessionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one session of a run."""

    run: str
    """Folder of the run."""
    model: str
    """Name of the model."""
    exit_code: int
    """Exit code of the command."""
    complete: bool
    """Whether all planned samples are present."""
    samples: SampleCounts
    """Sample counts."""
    new_tokens: int
    """Completion tokens of this session, as reported by the servers."""
    seconds: float
    """Duration of the session, in seconds."""
    causes: list[Cause]
    """Reasons why samples are missing."""
    warnings: list[str]
    """Warnings to show with a score."""
    stopped: str
    """Why the session ended early; empty otherwise."""
    target_reached: str
    """A message that the target of `--target-error` was reached; empty if it was not."""
    target_missed: str
    """A message that the target of `--target-error` was not reached; empty if it was reached or is not set."""


class SweepEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a sweep."""

    sweep: str
    """Name of the sweep."""
    folder: str
    """Folder of the sweep."""
    exit_code: int
    """Exit code of the command."""
    complete: bool
    """Whether all cells are complete and none failed."""
    cells: list[CellRow]
    """Rows of `table.csv`."""
    means: list[MeanRow]
    """Rows of `means.csv`; empty if the file is not a suite."""


class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of an export."""

    path: str
    """Path of the file."""
    records: int | None
    """Number of samples or results in the file; None for other files."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The files of an export."""

    folder: str
    """Folder of the files."""
    files: list[ExportedFile]
    """Files that were written."""
    left_out: Mapping[str, Mapping[str, int]]
    """Benchmark → reason → number of samples that were not exported."""
