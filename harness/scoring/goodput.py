"""Goodput: requests that meet time limits, and right answers among them, while the server was at full load.

A server that is fast because it drops tokens keeps every limit, so right answers are counted, too. A request counts by
the fraction of its time that was at full load. The intervals are based on variation over time, as in `scoring.load`; an
interval is at least Wilson's, because blocks that all meet the limits show no variation.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.time_limits import TimeLimits
from harness.scoring.client_metrics import streamed_tokens
from harness.scoring.load import Rate, at_full_load, rate_of
from harness.scoring.sample_columns import Observed, Rows
from harness.scoring.stats import Array, wilson


class Goodput(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests met the limits, and how many of them were answered correctly."""

    first_token: float | None
    """Limit on the time to the first token, in seconds; None: not limited."""
    token_gap: float | None
    """Limit on a request's mean time per token after the first one, in seconds; None: not limited."""
    total: float | None
    """Limit on the time to the end of the reply, in seconds; None: not limited."""
    share: float
    """Fraction of requests that must meet the limits for a load to be accepted."""
    n_requests: float
    """Number of requests at full load whose limited times are known, each by the fraction of its time at full load."""
    n_unknown: float
    """Number of such requests whose times are unknown, which are left out."""
    seconds: float
    """Seconds at full load."""
    within: Rate
    """Fraction of requests that met all limits: at the first attempt, or with a `rate`, in the time of all attempts."""
    right: Rate
    """Fraction of requests that met all limits and were answered correctly."""
    within_per_s: Rate
    """Requests per second that met all limits."""
    right_per_s: Rate
    """Right answers per second that met all limits."""

    @property
    def limits(self) -> TimeLimits:
        """The limits."""
        return TimeLimits(self.first_token, self.token_gap, self.total, self.share)

    @property
    def holds(self) -> bool:
        """Whether the interval shows that enough requests meet the limits."""
        return self.within.low is not None and self.within.low >= self.share


def goodput(observed: Observed, rows: Rows, right: Array, limits: TimeLimits) -> Goodput | None:
    """The goodput of the samples in `rows`; None if the server was never at full load or no limited time is known.

    right: for each row, whether it was answered correctly, (rows,). Continued samples and samples that used a tool are
    left out, because their times are not those of a single request.
    """
    single = ~observed.flagged("salvaged", rows) & ~observed.flagged("foreign", rows)
    single &= np.isnan(observed.columns["steps"].numbers(rows))
    rows, correct = rows[single], right[single] > 0
    began, total = observed.columns["started"].numbers(rows), observed.columns["total"].numbers(rows)
    # Times from a planned arrival include failed attempts; other times are those of the last attempt.
    is_planned = observed.columns["late"].has_numbers
    full = at_full_load(began, began + total, planned=is_planned)
    if full is None:
        return None
    is_within = np.full(len(rows), is_planned) | ~(observed.columns["attempts"].numbers(rows) > 1)
    is_timed = np.ones(len(rows), dtype=bool)
    for times, limit in zip(_times(observed, rows, total), limits[:3], strict=True):
        if limit is not None:
            is_timed = is_timed & ~np.isnan(times)
            is_within = is_within & (times <= limit)  # False where a time is NaN
    weights = full.shares(began, began + total)
    of_blocks = weights[is_timed].sum(axis=0)
    n, n_unknown = float(of_blocks.sum()), float(weights[~is_timed].sum())
    if not n:
        return None

    def rates(good: NDArray[np.bool_]) -> tuple[Rate, Rate]:
        """The share of these requests, and their number per second."""
        missed = weights[is_timed & ~good].sum(axis=0)
        counts = of_blocks - missed
        share = rate_of(1 - float(missed.sum()) / n, list(counts[of_blocks > 0] / of_blocks[of_blocks > 0]))
        rate = rate_of(float(counts.sum()) / full.seconds, list(counts / full.block_seconds))
        if share.low is None:
            return share, rate
        low, high = map(float, wilson(np.array(share.value), np.array(n)))
        per_s = n / full.seconds
        return _widened(share, low, high, most=1.0), _widened(rate, per_s * low, per_s * high)

    (within, within_per_s), (right_within, right_per_s) = rates(is_within), rates(is_within & correct)
    return Goodput(
        **limits._asdict(),
        n_requests=n,
        n_unknown=n_unknown,
        seconds=full.seconds,
        within=within,
        right=right_within,
        within_per_s=within_per_s,
        right_per_s=right_per_s,
    )


MAX_LATE_S = 0.1
"""Longest time after its planned arrival at which a request is sent in time."""


def late_warning(late: Array) -> str:
    """The warning that requests were sent late; empty if they were not. late: seconds after their planned arrivals."""
    if not (n := int((late > MAX_LATE_S).sum())):
        return ""
    return (
        f"{n:,} of {len(late):,} requests were sent over {MAX_LATE_S} s after their planned arrivals, by at most "
        f"{np.nanmax(late):.3g} s: `concurrency` was reached, earlier attempts failed, or this machine was too slow. "
        "The times include the delay"
    )


MAX_RETRIED = 0.01
"""Largest share of requests that took several attempts without a warning."""


def retry_warning(n_retried: int, n: int) -> str:
    """The warning that n_retried of n requests failed at first; empty for few."""
    if n_retried <= MAX_RETRIED * n:
        return ""
    return (
        f"{n_retried:,} of {n:,} requests failed at first and were sent again: their times, and the speeds, are those "
        "of the last attempts"
    )


def _widened(rate: Rate, low: float, high: float, most: float = math.inf) -> Rate:
    """The rate with an interval that contains `low` and `high`. most: the largest possible rate."""
    return Rate(rate.value, min(low, rate.low or 0.0), min(most, max(high, rate.high or 0.0)))


def _times(observed: Observed, rows: Rows, total: Array) -> tuple[Array, Array, Array]:
    """The times that limits concern, in seconds: (first token, mean gap, total), NaN where unknown."""
    first, last = observed.columns["first_token"].numbers(rows), observed.columns["last_token"].numbers(rows)
    tokens = streamed_tokens(observed, rows)
    streamed = (tokens >= 2) & (last > first)  # a reply in one piece has no gaps
    gap = np.where(streamed, (last - first) / np.maximum(tokens - 1, 1), np.where(tokens == 1, 0.0, np.nan))
    return first, np.where(observed.flagged("summary", rows), np.nan, gap), total
