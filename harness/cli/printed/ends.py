"""Records of how a run, a sweep or an export ended."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.generation.dispatch.retry import Cause
from harness.sweeps.rows import CellRow, MeanRow


class SampleCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of samples. expected: that the run plans. done: on disk. owed: missing. accepted_as_missing: not on disk,
    because they can never succeed. this_session, truncated_this_session: finished in this session, and cut in it.
    """

    expected: int
    done: int
    owed: int
    accepted_as_missing: int
    this_session: int
    truncated_this_session: int


class SessionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How the session of a run ended.

    run: its folder. exit_code: the command's. complete: no sample is missing. new_tokens: completion tokens of this
    session, as the servers state them. seconds: its duration. causes: why samples are missing. warnings: sentences to
    show beside a score. stopped: why the session ended early, else empty. target_reached, target_missed: how
    `--target-error` ended, in a sentence, else empty.
    """

    run: str
    model: str
    exit_code: int
    complete: bool
    samples: SampleCounts
    new_tokens: int
    seconds: float
    causes: list[Cause]
    warnings: list[str]
    stopped: str
    target_reached: str
    target_missed: str


class SweepEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a sweep ended.

    sweep: its name. complete: no cell is lost. cells: the rows of `table.csv`. means: the rows of `means.csv`; empty
    for a file that is no suite.
    """

    sweep: str
    folder: str
    exit_code: int
    complete: bool
    cells: list[CellRow]
    means: list[MeanRow]


class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of an export. records: samples or results in the file; None for other files."""

    path: str
    records: int | None


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The files of an export, and their folder. left_out: benchmark → reason → number of samples that are in none."""

    folder: str
    files: list[ExportedFile]
    left_out: Mapping[str, Mapping[str, int]]
