"""The speed of a benchmark's streams, from the times at which the client received tokens. Pure.

Lag is how long a received token waited until the client read it. Gaps between tokens that are short compared with the
lag measure the client, not the server, and are left out (`MAX_LAG_SHARE`).
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.scoring.estimators import quantile
from harness.scoring.observed import Observed, Rows

MAX_LAG_SHARE = 0.25
"""Gaps are left out if the lag exceeds this fraction of the median gap."""


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, over the n_samples whose replies were streamed.

    first_token_p50, first_token_p99: from the request to the first token. gap_p50, gap_p99: the median sample's median
    and 99th percentile of the time between token events; None = too short compared with the client's lag, or the lag is
    unknown. tokens_per_s: of the median stream, after its first token; None if no server stated tokens. Reasoning that
    was not sent does not count. lag: how long a received token waited until the client read it (99th percentile over
    time), of the median sample. kernel_stamps: fraction of the samples with times from the kernel.
    """

    n_samples: int
    first_token_p50: float
    first_token_p99: float
    gap_p50: float | None
    gap_p99: float | None
    tokens_per_s: float | None
    lag: float | None
    kernel_stamps: float


def speed(observed: Observed, rows: Rows) -> Speed | None:
    """The speed over the samples `rows`; None if no reply was streamed.

    Interrupted samples are left out, because only their last request has times.
    """
    if not observed.first_token.stated:
        return None
    rows = rows[~np.isnan(observed.first_token.of(rows)) & ~observed.salvaged(rows)]
    if not len(rows):
        return None
    first = observed.first_token.of(rows)
    lag = quantile(_stated(observed.lag.of(rows)), 0.5)
    gap_p50 = quantile(_stated(observed.gap_p50.of(rows)), 0.5)
    gap_p99 = quantile(_stated(observed.gap_p99.of(rows)), 0.5)
    if gap_p50 is not None and (lag is None or lag > MAX_LAG_SHARE * gap_p50):
        gap_p50 = gap_p99 = None
    return Speed(
        n_samples=len(rows),
        first_token_p50=quantile(first, 0.5) or 0.0,
        first_token_p99=quantile(first, 0.99) or 0.0,
        gap_p50=gap_p50,
        gap_p99=gap_p99,
        tokens_per_s=quantile(_rates(observed, rows, first), 0.5),
        lag=lag,
        kernel_stamps=int(observed.stamped_by_kernel(rows).sum()) / len(rows),
    )


def _stated(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[~np.isnan(values)]


def _rates(observed: Observed, rows: Rows, first: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tokens per second after the first token, of each sample with such a rate; a reply in one piece has none."""
    tokens = observed.completion_tokens.of(rows)
    thought = np.nan_to_num(observed.reasoning_tokens.of(rows))
    tokens -= np.where(observed.reasoned(rows), 0.0, thought)  # Hidden reasoning came before the first token.
    seconds = observed.last_token.of(rows) - first
    timed = (tokens >= 2) & (seconds > 0)  # False where either number is NaN.
    return (tokens[timed] - 1) / seconds[timed]
