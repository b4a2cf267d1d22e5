"""The rows of a sweep's `table.csv` and `means.csv`, and how it ended; programs read the same records."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from harness.scoring.goodput import Goodput
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
    """The row's label under `models`; absent if the sweep has no such axis."""
    servers: Label = UNSET
    """The row's label under `servers`; absent if the sweep has no such axis."""
    prompts: Label = UNSET
    """The row's label under `prompts`; absent if the sweep has no such axis."""
    sampling: Label = UNSET
    """The row's label under `sampling`; absent if the sweep has no such axis."""
    benchmarks: Label = UNSET
    """The row's label under `benchmarks`; absent if the sweep has no such axis."""
    accuracy: float | None
    """Accuracy, as in `scores.json`."""
    sampling_low: float | None
    """Lower endpoint of the 95% interval for accuracy on the same questions."""
    sampling_high: float | None
    """Upper endpoint of the same interval."""
    sampling_error: float | None
    """Standard error of accuracy on the same questions."""
    question_error: float | None
    """Standard error of accuracy on new questions."""
    pass_at_k: float | None
    """pass@k."""
    pass_at_k_low: float | None
    """Lower endpoint of the 95% interval for pass@k on the same questions."""
    pass_at_k_high: float | None
    """Upper endpoint of the same interval."""
    k: int | None
    """The value of k in `pass_at_k`."""
    mean_tokens: float | None
    """Mean completion tokens per sample."""
    questions: int | None
    """Number of questions."""
    samples: float | None
    """Number of samples."""
    difference: float | None
    """The cell's accuracy minus the base cell's accuracy."""
    difference_low: float | None
    """Lower endpoint of the 95% interval for the difference on the same questions."""
    difference_high: float | None
    """Upper endpoint of the same interval."""
    p: float | None
    """p-value of the difference, adjusted with Holm's method across the whole sweep."""
    reported: float | None
    """The model's published pass@1, measured with the most similar settings."""
    standing: str | None
    """Whether the cell agrees with published scores."""
    likelihood_difference: float | None = None
    """Mean log-likelihood difference from the base, in nats per token."""
    question_low: float | None
    """Lower endpoint of the 95% interval for accuracy on new questions."""
    question_high: float | None
    """Upper endpoint of the same interval."""
    reason: str
    """Why the cell failed or why samples are missing; otherwise empty."""
    warnings: str
    """The score's warnings, joined into one string."""
    load: LoadPoint | UnsetType = UNSET
    """Throughput and latency; absent unless the sweep varies `concurrency`."""
    goodput: Goodput | UnsetType = UNSET
    """Requests within the limits of `limits`; absent without limits, or if the server was never at full load."""


class MeanRow(msgspec.Struct, frozen=True, kw_only=True):
    """The mean over a suite's benchmarks for one combination of values on the other axes. All values are fractions."""

    models: Label = UNSET
    """The row's label under `models`; absent if the sweep has no such axis."""
    servers: Label = UNSET
    """The row's label under `servers`; absent if the sweep has no such axis."""
    prompts: Label = UNSET
    """The row's label under `prompts`; absent if the sweep has no such axis."""
    sampling: Label = UNSET
    """The row's label under `sampling`; absent if the sweep has no such axis."""
    benchmarks: Label = UNSET
    """The row's label under `benchmarks`; absent if the sweep has no such axis."""
    mean: float | None
    """Mean accuracy; None if a benchmark has no score."""
    sampling_low: float | None
    """Lower endpoint of the 95% interval on the same questions; None if planned samples are missing."""
    sampling_high: float | None
    """Upper endpoint of the same interval."""
    question_low: float | None
    """Lower endpoint of the 95% interval on new questions; None if planned samples are missing."""
    question_high: float | None
    """Upper endpoint of the same interval."""
    difference: float | None
    """Mean accuracy minus the base's mean accuracy."""
    difference_low: float | None
    """Lower endpoint of the 95% interval for the difference on the same questions."""
    difference_high: float | None
    """Upper endpoint of the same interval."""
    p: float | None
    """p-value of the difference, adjusted with Holm's method across the whole sweep."""
    reported: float | None
    """Published score that is itself a mean over exactly these runs (one benchmark with different settings); None if
    there is none.
    """
    missing: str
    """Benchmarks without a complete score, joined into one string."""


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
