"""The words on what a planned run takes."""

from __future__ import annotations

from harness.core.nouns import count_noun, duration
from harness.generation.forecast import Forecast

MIN_IN_MILLIONS = 10_000
"""Tokens are printed in millions if their error is at least this many tokens."""


def forecast_lines(ahead: Forecast, concurrency: int) -> list[str]:
    """The samples, tokens, time and money of a run, as lines.

    concurrency: requests in flight that the forecast assumes.
    """
    in_flight = f"with {count_noun(concurrency, 'request')} in flight"
    shortest, longest = duration(ahead.least_s), duration(ahead.most_s)
    time = f"about {shortest} {in_flight}"
    if shortest != longest:
        time = (
            f"{shortest} to {longest} {in_flight} (shorter time: each stream keeps its speed; longer time: the total "
            "speed stays as it was)"
        )
    lines = [
        f"{count_noun(ahead.n_samples, 'sample')}, {_tokens(ahead.tokens, ahead.tokens_error)}",
        f"  time: {time}",
    ]
    if ahead.usd is not None:
        lines.append(f"  cost: about {ahead.usd:,.2f} USD")
    return lines


def _tokens(number: float, error: float) -> str:
    """The number of tokens with its error, in millions if the error is large enough (`MIN_IN_MILLIONS`).

    An error below 1 token stands for an unknown one and is not printed.
    """
    if error >= MIN_IN_MILLIONS:
        return f"{number / 1e6:,.2f} ± {error / 1e6:,.2f} million new tokens"
    return f"about {number:,.0f}{f' ± {error:,.0f}' if error >= 1 else ''} new tokens"
