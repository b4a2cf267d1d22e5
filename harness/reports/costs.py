"""What samples took: prompt tokens, and USD at the prices that the run records.

Tokens are those that the servers stated. Thinking counts as completion; a cached prompt token costs as much as another.
"""

from __future__ import annotations

import contextlib

import msgspec

from harness.core.money import Prices
from harness.runs.manifest import BenchmarkRecord


def usd(record: BenchmarkRecord, tokens_in: float, tokens_out: float) -> float | None:
    """The cost of these tokens in USD, at the prices that the record states; None without."""
    prices = recorded_prices(record)
    return None if prices is None else prices.usd(tokens_in, tokens_out)


def recorded_prices(record: BenchmarkRecord) -> Prices | None:
    """The prices that the record states; None without."""
    with contextlib.suppress(msgspec.ValidationError):
        return msgspec.convert(record.settings.get("prices"), Prices)
    return None
