"""What samples took: prompt tokens, and USD at the prices that the run records.

Tokens are those that the servers stated. Thinking counts as completion; a cached prompt token costs as much as another.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import msgspec

from harness.core.money import Prices
from harness.reports.scored import ScoredBenchmark
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


class SampleCosts(NamedTuple):
    """What the samples of one benchmark took, on average. n: samples that the numbers cover; 0 if nothing is known.

    tokens_in: prompt tokens of a sample. usd: of a sample. usd_right: of all samples, for each right one; None if none
    is right. Each is None where it is unknown: a server stated no tokens, or the run records no prices.
    """

    n: int = 0
    tokens_in: float | None = None
    usd: float | None = None
    usd_right: float | None = None

    @classmethod
    def of(cls, scored: ScoredBenchmark) -> SampleCosts:
        """Return the costs of a scored benchmark; its score covers them."""
        score = scored.score
        work = None if score is None else score.workload
        # Means over a part of the samples would be compared with means over others.
        if score is None or work is None or work.n_stated < work.n_samples:
            return cls()
        n = work.n_samples
        cost = usd(scored.record, work.prompt_tokens, work.completion_tokens)
        return cls(
            n=n,
            tokens_in=work.prompt_tokens / n,
            usd=None if cost is None else cost / n,
            usd_right=cost / score.n_correct if cost is not None and score.n_correct else None,
        )
