"""The rows of a sweep's `table.csv` and `means.csv`; programs read the same rows."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from harness.scoring.load import LoadPoint

Label = str | UnsetType
"""The row's entry on one axis; left out if the file does not have the axis."""


class CellRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of a sweep. Accuracies and differences are fractions; None means unknown.

    Wide: a row of `table.csv` and of the JSON output holds every number of its cell.
    """

    cell: str
    """Name of the cell, which is also the name of its run folder."""
    models: Label = UNSET
    """Label of its entry under `models`; absent if the sweep has no such axis."""
    servers: Label = UNSET
    """Label of its entry under `servers`; absent if the file has no such axis."""
    prompts: Label = UNSET
    """Label of its entry under `prompts`; absent if the file has no such axis."""
    sampling: Label = UNSET
    """Label of its entry under `sampling`; absent if the file has no such axis."""
    benchmarks: Label = UNSET
    """Label of its entry under `benchmarks`; absent if the file has no such axis."""
    accuracy: float | None
    """Accuracy, as in `scores.json`."""
    sampling_low: float | None
    """Lower endpoint of the 95% interval of the accuracy for the same questions."""
    sampling_high: float | None
    """Upper endpoint of the same interval."""
    sampling_error: float | None
    """Standard error of the accuracy for the same questions."""
    question_error: float | None
    """Standard error of the accuracy for new questions."""
    pass_at_k: float | None
    """pass@k."""
    pass_at_k_low: float | None
    """Lower endpoint of the 95% interval of pass@k for the same questions."""
    pass_at_k_high: float | None
    """Upper endpoint of the same interval."""
    k: int | None
    """Value of k for `pass_at_k`."""
    mean_tokens: float | None
    """Mean completion tokens per sample."""
    questions: int | None
    """Number of questions."""
    samples: float | None
    """Number of samples."""
    difference: float | None
    """Accuracy minus the accuracy of the base cell."""
    difference_low: float | None
    """Lower endpoint of the 95% interval of the difference for the same questions."""
    difference_high: float | None
    """Upper endpoint of the same interval."""
    p: float | None
    """p-value of the difference, adjusted by Holm's method over the whole sweep."""
    reported: float | None
    """Published pass@1 of the model, measured with the most similar settings."""
    standing: str | None
    """Whether the cell agrees with published scores."""
    gap: float | None = None
    """Mean log-likelihood difference from the base, in nats per token."""
    question_low: float | None
    """Lower endpoint of the 95% interval of the accuracy for new questions."""
    question_high: float | None
    """Upper endpoint of the same interval."""
    reason: str
    """Why the cell failed or samples are missing; otherwise empty."""
    warnings: str
    """Warnings of the score, joined into one text."""
    load: LoadPoint | UnsetType = UNSET
    """Throughput and latency; absent unless the sweep varies `concurrency`."""
    shown: dict[str, str] = {}
    """Column of the printed table → its text. In the CSV file, these columns are named `shown_…`."""


class MeanRow(msgspec.Struct, frozen=True, kw_only=True):
    """Mean over a suite's benchmarks for one combination of the other axes, as fractions."""

    models: Label = UNSET
    """Label of its entry under `models`; absent if the sweep has no such axis."""
    servers: Label = UNSET
    """Label of its entry under `servers`; absent if the file has no such axis."""
    prompts: Label = UNSET
    """Label of its entry under `prompts`; absent if the file has no such axis."""
    sampling: Label = UNSET
    """Label of its entry under `sampling`; absent if the file has no such axis."""
    benchmarks: Label = UNSET
    """Label of its entry under `benchmarks`; absent if the file has no such axis."""
    mean: float | None
    """Mean accuracy; None if a benchmark has no score."""
    sampling_low: float | None
    """Lower endpoint of the 95% interval for the same questions; None if planned samples are missing."""
    sampling_high: float | None
    """Upper endpoint of the same interval."""
    question_low: float | None
    """Lower endpoint of the 95% interval for new questions; None if planned samples are missing."""
    question_high: float | None
    """Upper endpoint of the same interval."""
    difference: float | None
    """Mean accuracy minus the mean accuracy of the base."""
    difference_low: float | None
    """Lower endpoint of the 95% interval of the difference for the same questions."""
    difference_high: float | None
    """Upper endpoint of the same interval."""
    p: float | None
    """p-value of the difference, adjusted by Holm's method over the whole sweep."""
    reported: float | None
    """Mean of the scores that were published for these settings of a single benchmark."""
    missing: str
    """Benchmarks without a complete score, joined into one text."""
