"""The rows of a sweep's `table.csv` and `means.csv`; programs read the same rows."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from harness.scoring.load import LoadPoint

Label = str | UnsetType
"""The row's entry on one axis; left out if the file does not have the axis."""


class CellRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: its entries on the axes of the file, its numbers as fractions (None: unknown), and why it has no score.

    accuracy and its errors are as in `scores.json`; sampling_low … question_high: ends of the 95 % intervals; those of
    pass@k and of the difference are for the same questions. warnings: the score's. difference, p: against the base
    cell. pass_at_k: pass@k for this k. reported: the nearest published pass@1 of the model. standing: whether the cell
    agrees with published scores. gap: of `likelihood`, in nats a token. reason: why samples are missing or the cell
    failed; empty if nothing is wrong. load: of a sweep over `concurrency`. shown: column of the file's table → its
    text, as printed; `shown_…` in the CSV.

    Wide: a row of `table.csv` and of the JSON output holds every number of its cell.
    """

    cell: str
    models: Label = UNSET
    servers: Label = UNSET
    prompts: Label = UNSET
    sampling: Label = UNSET
    benchmarks: Label = UNSET
    accuracy: float | None
    sampling_low: float | None
    sampling_high: float | None
    sampling_error: float | None
    question_error: float | None
    pass_at_k: float | None
    pass_at_k_low: float | None
    pass_at_k_high: float | None
    k: int | None
    mean_tokens: float | None
    questions: int | None
    samples: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    p: float | None
    reported: float | None
    standing: str | None
    gap: float | None = None
    question_low: float | None
    question_high: float | None
    reason: str
    warnings: str
    load: LoadPoint | UnsetType = UNSET
    shown: dict[str, str] = {}


class MeanRow(msgspec.Struct, frozen=True, kw_only=True):
    """The mean over a suite's benchmarks for one combination of entries of the other axes, as fractions.

    missing: the benchmarks without a complete score, in one text. reported: the published mean over the same settings
    of one benchmark. mean: None if one of them has no score at all; the
    ends of the 95 % intervals: None if a run misses samples that it was asked for.
    """

    models: Label = UNSET
    servers: Label = UNSET
    prompts: Label = UNSET
    sampling: Label = UNSET
    benchmarks: Label = UNSET
    mean: float | None
    sampling_low: float | None
    sampling_high: float | None
    question_low: float | None
    question_high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    p: float | None
    reported: float | None
    missing: str
