"""`harness run --pilot`: the forecast in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.showing.lines import duration

if TYPE_CHECKING:
    from harness.generation.forecast import Forecast
    from harness.verbs.pilot import ExpectedScore, Piloted

MIN_IN_MILLIONS = 10_000
"""Tokens from which an error is told in millions."""


def lines(piloted: Piloted) -> list[str]:
    """The forecast of the rest of the run, and the expected error of each benchmark, as lines."""
    accuracies = [f"  {name}: {_accuracy(expected)}" for name, expected in piloted.expected.items()]
    return [*forecast_lines(piloted.forecast, piloted.concurrency), *accuracies]


def forecast_lines(ahead: Forecast, concurrency: int) -> list[str]:
    """Samples, tokens, time and money to come."""
    if not ahead.n_samples:
        return ["forecast: nothing is left to ask"]
    lines = [
        f"forecast: {ahead.n_samples:,} samples are left, {_tokens(ahead.tokens, ahead.tokens_error)}",
        f"  time: {duration(ahead.least_s)} to {duration(ahead.most_s)} with {concurrency} in flight "
        "(if each stream keeps its speed; if the total speed stays as it was)",
    ]
    if ahead.usd is not None:
        lines.append(f"  cost: about {ahead.usd:,.2f} USD")
    return lines


def _tokens(number: float, error: float) -> str:
    """An error that would be printed as nothing in millions is printed in tokens; one of nothing is not known."""
    if error >= MIN_IN_MILLIONS:
        return f"{number / 1e6:,.2f} ± {error / 1e6:,.2f} million new tokens"
    return f"about {number:,.0f}{f' ± {error:,.0f}' if error >= 1 else ''} new tokens"


def _accuracy(expected: ExpectedScore) -> str:
    if expected.accuracy is None:
        return "no sample"
    accuracy = f"accuracy about {100 * expected.accuracy:.1f} %"
    if expected.error_now is None or expected.error_then is None:
        return f"{accuracy}; the sampling error cannot be told from one sample a question"
    return (
        f"{accuracy}, sampling error about {100 * expected.error_then:.2f} points at {expected.samples} samples a "
        f"question ({100 * expected.error_now:.2f} now)"
    )
