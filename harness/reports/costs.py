"""What samples took: prompt tokens, and USD at the prices that the run records.

Tokens are those that the servers stated. Thinking counts as completion; a cached prompt token costs as much as another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.reports.scored import ScoredBenchmark
from harness.runs.manifest import BenchmarkRecord

SMALL_USD = 0.001
"""An amount below this has two significant digits in place of four decimals: it may be the cost of one sample."""


def usd(record: BenchmarkRecord, tokens_in: float, tokens_out: float) -> float | None:
    """The cost of these tokens in USD, at the prices (USD per million tokens) that the record states; None without."""
    prices = record.settings.get("prices")
    if not isinstance(prices, Mapping):
        return None
    prompt, completion = prices.get("prompt"), prices.get("completion")
    if not isinstance(prompt, int | float) or not isinstance(completion, int | float):
        return None
    return (tokens_in * prompt + tokens_out * completion) / 1e6


def usd_in_words(amount: float) -> str:
    """The amount with its unit, such as `12.30 USD`, `0.0123 USD` or `0.000043 USD`."""
    if amount >= 1:
        return f"{amount:,.2f} USD"
    # 4.3e-05 has its second digit in the sixth decimal.
    decimals = 1 - int(f"{amount:.0e}".partition("e")[2]) if 0 < amount < SMALL_USD else 4
    return f"{amount:.{decimals}f} USD"


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
