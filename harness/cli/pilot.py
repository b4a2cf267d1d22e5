"""`harness run --pilot`: prints the forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.core.nouns import are, count_noun, in_percent
from harness.showing.lines import duration

if TYPE_CHECKING:
    from harness.generation.forecast import Forecast
    from harness.verbs.pilot import ExpectedScore, Piloted

MIN_IN_MILLIONS = 10_000
"""Tokens are printed in millions if their error is at least this many tokens."""


def lines(piloted: Piloted) -> list[str]:
    """The lines on the rest of the run: its forecast, and the accuracy and expected error of each benchmark."""
    accuracies = [f"  {name}: {_accuracy(expected)}" for name, expected in piloted.expected.items()]
    return [*forecast_lines(piloted.forecast, piloted.concurrency), *accuracies]


def forecast_lines(ahead: Forecast, concurrency: int) -> list[str]:
    """The samples, tokens, time and money that are still to come, as lines.

    concurrency: requests in flight that the forecast assumes.
    """
    if not ahead.n_samples:
        return ["forecast: no sample is left"]
    in_flight = f"with {count_noun(concurrency, 'request')} in flight"
    shortest, longest = duration(ahead.least_s), duration(ahead.most_s)
    time = f"about {shortest} {in_flight}"
    if shortest != longest:
        time = (
            f"{shortest} to {longest} {in_flight} (shorter time: each stream keeps its speed; longer time: the total "
            "speed stays as it was)"
        )
    lines = [
        f"forecast: {count_noun(ahead.n_samples, 'sample')} {are(ahead.n_samples)} left, "
        f"{_tokens(ahead.tokens, ahead.tokens_error)}",
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


def _accuracy(expected: ExpectedScore) -> str:
    """The accuracy now, and its sampling error now and after the whole run, in words."""
    return "; ".join((_forecast(expected), *expected.verifier_errors))


def _forecast(expected: ExpectedScore) -> str:
    """As `_accuracy`, without what the verifier did in place of a verdict."""
    if expected.low is None or expected.high is None:
        return "no sample"
    if expected.n_undecided == expected.n_samples:
        return f"accuracy unknown: all of {count_noun(expected.n_samples, 'sample')} undecided, so no error is forecast"
    if expected.accuracy is None:
        return (
            f"accuracy {in_percent(expected.low)} to {in_percent(expected.high)} %: {expected.n_undecided:,} of "
            f"{count_noun(expected.n_samples, 'sample')} undecided, so no error is forecast"
        )
    accuracy = f"accuracy about {in_percent(expected.accuracy)} %"
    if expected.error_now is None or expected.error_then is None:
        return f"{accuracy}; the sampling error is unknown with one sample a question"
    return (
        f"{accuracy}, sampling error about {100 * expected.error_then:.2f} points at {expected.samples} samples a "
        f"question ({100 * expected.error_now:.2f} now)"
    )
