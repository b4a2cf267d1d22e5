"""The table of tokens: lengths of samples."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reports.tables import Table, short
from harness.scoring import Score
from harness.scoring.uncertainty import sampling_cell

NO_INTERVAL = "?"
"""Stands for the interval of a mean of tokens where the samples are too few to estimate it."""

NO_MEAN_INTERVAL = f"({NO_INTERVAL}): too few samples show how far the lengths vary, so the mean has no interval"


def token_table(scores: Sequence[tuple[str, Score]]) -> Table | None:
    """The table of completion and reasoning tokens of all samples, of right ones, and of the others.

    None if no server stated any tokens.
    """
    rows = []
    for label, score in scores:
        if score.tokens is None:
            continue
        tokens = score.tokens
        kinds = {
            "completion": (tokens.completion, tokens.completion_right, tokens.completion_wrong),
            "reasoning": (tokens.reasoning, tokens.reasoning_right, tokens.reasoning_wrong),
        }
        rows += [
            (
                short(label),
                short(score.benchmark),
                kind,
                of,
                str(counts.n),
                f"{counts.mean.value:.0f} ({sampling_cell(counts.mean) if counts.mean.sampling else NO_INTERVAL})",
                *(f"{v:.0f}" for v in (counts.p10, counts.p50, counts.p90, counts.p99, counts.largest)),
            )
            for kind, parts in kinds.items()
            for of, counts in zip(("all", "right", "not right"), parts, strict=True)
            if counts is not None
        ]
    columns = ("run", "benchmark", "tokens", "of", "samples", "mean", "p10", "p50", "p90", "p99", "most")
    notes = (NO_MEAN_INTERVAL,) if any(NO_INTERVAL in row[5] for row in rows) else ()
    return Table("Tokens of a sample", columns, tuple(rows), notes, frozenset(range(4, 11))) if rows else None
