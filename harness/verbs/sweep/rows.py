"""The rows of a sweep's `table.csv` and `means.csv`, also as programs read them."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

Label = str | UnsetType
"""Where the row stands on an axis; left out where the file does not name the axis."""


class CellRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: where it stands on the axes that the file names, its numbers as fractions (None: unknown), and why it
    is lost.

    accuracy and its errors as in `scores.json`; sampling_low … question_high: the ends of the 95 % intervals.
    difference, p: beside the cell of the base. pass_at_k: pass@k of this k. reported: pass@1 as it is published of the
    model with the nearest settings; standing: whether the cell agrees with what is published.
    reason: why samples are owed, or why the cell failed; empty where all is well.
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
    k: int | None
    mean_tokens: float | None
    questions: int | None
    samples: int | None
    difference: float | None
    p: float | None
    reported: float | None
    standing: str | None
    question_low: float | None
    question_high: float | None
    reason: str


class MeanRow(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of a suite's benchmarks at one point of the other axes, as fractions. missing: the benchmarks without a
    score, in one text; mean: None where there are such."""

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
    p: float | None
    missing: str
