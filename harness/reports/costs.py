"""The prices that a run records, by which its tokens have a cost.

Tokens are those that the servers stated. Thinking counts as completion; a cached prompt token costs as much as another.
"""

from __future__ import annotations

import contextlib

import msgspec

from harness.core.money import Prices
from harness.runs.manifest import BenchmarkRecord


def recorded_prices(record: BenchmarkRecord) -> Prices | None:
    """The prices that the record states; None without."""
    with contextlib.suppress(msgspec.ValidationError):
        return msgspec.convert(record.settings.get("prices"), Prices)
    return None
