"""What a log-likelihood difference means in points: a line fitted to pairs of log-likelihood and score differences.

    RUN/likelihood/pairs.jsonl    a line for each copy and benchmark, in the base's run RUN

With the log-likelihood difference g and the score difference d of n pairs, the line d = b g + e + c runs through the
origin, since a copy with g = 0 is its base. All pairs and the other copy share the error c of the base's own samples,
which the fit attributes to the slope. Its variance τ² is half that of a score difference, assuming that the base has as
many samples as its copies:

    b = Σ g d / Σ g²        σ² = Σ (d − b g)² / (n − 1)
    score difference of another copy with g = x:  b x ± √(t² σ² (1 + x² / Σ g²) + z² τ² (1 − x Σ g / Σ g²)²)

where t has n − 1 degrees of freedom and z is the normal quantile. This is the prediction interval of a regression
through the origin for the difference that `compare` shows for a copy with as many samples as those of the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.deciding.comparison import PairedComparison
from harness.deciding.stats_differences import power_factor
from harness.progress.watching import Watcher
from harness.runs import line_file
from harness.runs.layout import RunFolder
from harness.runs.recorded_settings import difference_in_words, differences_in_curve
from harness.scoring.stats import Z_95, t_factor

FOLDER = "likelihood"
"""Name of the folder, inside a run folder, for comparisons of copies based on the run's replies."""

MIN_PAIRS = 3
"""Minimum number of pairs for a prediction about another copy."""

MOST_TIMES = 1000
"""Largest multiple of the pairs' sample count that is worth reporting."""


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A copy whose log-likelihood difference and accuracy difference from its base are both known."""

    FORMER_KEYS: ClassVar = ((rb'"gap":', b'"difference":'),)
    copy: str
    """Path of the copy's run, relative to the parent folder of the base's run."""
    benchmark: str
    """Name of the benchmark."""
    difference: float
    """Mean log-likelihood difference, in nats per token."""
    points: float
    """The copy's accuracy minus the base's accuracy, in percentage points."""
    error: float
    """Sampling error of `points`, in percentage points."""


class ExpectedPoints(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy difference to expect between a copy and its base."""

    benchmark: str
    """Name of the benchmark."""
    pairs: int
    """Number of known copy-base pairs."""
    points: float
    """Expected difference, in percentage points."""
    low: float
    """Lower endpoint of the 95% interval, in percentage points."""
    high: float
    """Upper endpoint of the 95% interval, in percentage points."""
    times: float
    """Number of samples needed to detect a difference this large (80% power), as a multiple of the sample count of the
    known pairs; capped at 1,000.
    """

    def __str__(self) -> str:
        times = (
            "at most as many samples as those pairs contain"
            if self.times <= 1
            else f"about {self.times:,.0f} times as many samples"
        )
        if self.times >= MOST_TIMES:
            times = f"more than {MOST_TIMES:,} times as many samples"
        interval = f"{self.points:+z.1f} points ({self.low:+z.1f} to {self.high:+z.1f})"
        return (
            f"expected difference, based on {self.pairs} pairs: {interval} on {self.benchmark}; detecting it "
            f"requires {times}"
        )


def file_of(base: RunFolder) -> Path:
    """The file with the pairs of a base's run."""
    return base.path / FOLDER / "pairs.jsonl"


def stored(base: RunFolder) -> list[Pair]:
    """The pairs stored with a base's run: the latest for each copy and benchmark. Raises `StoreError`."""
    lines = line_file.read_appended(
        file_of(base),
        Pair,
        "Remove the file. A sweep will record its sample pairs again; for other runs, record them "
        "with `probe --sampled`.",
        sealed=True,
    )
    return [*{(pair.copy, pair.benchmark): pair for pair in lines}.values()]


def note(base: RunFolder, pairs: Sequence[Pair]) -> None:
    """Store the new pairs. Raises `StoreError`."""
    before = stored(base)
    for pair in pairs:
        if pair not in before:
            line_file.append_line(file_of(base), line_file.line(pair, sealed=True))


def pair_of(copy: str, benchmark: str, difference: float, scores: PairedComparison) -> Pair:
    """The pair of a copy's log-likelihood difference and score difference from the base on a benchmark."""
    return Pair(
        copy=copy,
        benchmark=benchmark,
        difference=difference,
        points=100 * scores.difference.value,
        error=100 * scores.sampling_error,
    )


def differences(base: RunFolder, copy: RunFolder, watcher: Watcher) -> dict[str, PairedComparison]:
    """Benchmark, by its name in the base's files → the copy's run minus the base's, with the warnings of `compare`.

    Raises `StoreError` if a run is not scored, and `UsageError` if the two have no common questions or different
    settings.
    """
    # Imported late: `status` reads records that contain an `ExpectedPoints`, but compares nothing.
    from harness.commands.baselines import pair_benchmarks
    from harness.commands.compare import compare_pair
    from harness.commands.comparison_warnings import comparison_warnings
    from harness.reports.scored import read_runs

    compared = {}
    for pair in pair_benchmarks(read_runs([base, copy]), only_first=True)[0]:
        ours, theirs = pair
        compared[theirs.folder.name] = compare_pair(pair)
        if apart := differences_in_curve(theirs.record, ours.record):
            says = f"its settings differ from those of {visible(theirs.run.label, 80)}: {difference_in_words(apart[0])}"
            raise UsageError(f"{says}. Specify a run with the same settings", field="sampled")
        for words in comparison_warnings(ours, theirs, compared[theirs.folder.name]):
            watcher.warn(f"{visible(ours.run.label, 80)} against {visible(theirs.run.label, 80)}: {words}")
    return compared


def expected(benchmark: str, pairs: Sequence[Pair], difference: float) -> ExpectedPoints | None:
    """The expected score difference of a copy with this log-likelihood difference.

    None if there are too few pairs, or if the difference is larger than theirs, where the line may not apply.
    """
    of_benchmark = [pair for pair in pairs if pair.benchmark == benchmark]
    squares = math.fsum(pair.difference**2 for pair in of_benchmark)
    if (
        len(of_benchmark) < MIN_PAIRS
        or not squares
        or abs(difference) > max(abs(pair.difference) for pair in of_benchmark)
    ):
        return None
    slope = math.fsum(pair.difference * pair.points for pair in of_benchmark) / squares
    freedom = len(of_benchmark) - 1
    variance = math.fsum((pair.points - slope * pair.difference) ** 2 for pair in of_benchmark) / freedom
    error = math.sqrt(math.fsum(pair.error**2 for pair in of_benchmark) / len(of_benchmark))
    shared = error / math.sqrt(2) * (1 - difference * math.fsum(pair.difference for pair in of_benchmark) / squares)
    half = math.hypot(t_factor(freedom) * math.sqrt(variance * (1 + difference**2 / squares)), Z_95 * shared)
    points = slope * difference
    times = (power_factor(1) * error / points) ** 2 if points else math.inf
    return ExpectedPoints(
        benchmark=benchmark,
        pairs=len(of_benchmark),
        points=points,
        low=points - half,
        high=points + half,
        times=min(times, MOST_TIMES),
    )
