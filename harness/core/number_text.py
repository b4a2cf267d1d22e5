"""Numbers in words for messages: with their nouns, as times, in percent and in money; and the prices of tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

_EXACT_DIGITS = 6
"""Decimals kept before a number is rounded for display, so that -3.75 is the same however it was computed."""


def count_noun(n: float, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 token`, `2,000 tokens`. plural: for a noun whose plural is not formed with an s."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def is_are(n: int) -> str:
    """The verb after a number: `is` after 1, otherwise `are`."""
    return "is" if n == 1 else "are"


def count_points(number: str) -> str:
    """A number of points, already formatted, with its noun: `1 point`, `2.5 points`."""
    return f"{number} point{'' if number == '1' else 's'}"


def exact(number: float, factor: int = 1) -> str:
    """A number, times a power of ten, in decimals without an exponent, which are read back as the same number."""
    return f"{(Decimal(repr(number)) * factor).normalize():f}"


def in_percent(fraction: float) -> str:
    """A fraction in percent with one decimal, so that one number has the same digits in each table and sentence."""
    return f"{round(100 * fraction, _EXACT_DIGITS):.1f}"


def in_points(difference: float) -> str:
    """The difference of two fractions in percentage points, with one decimal and its sign: `+1.5`, `-3.8`, `+0.0`."""
    return f"{round(100 * difference, _EXACT_DIGITS):+z.1f}"


MAX_SHOWN_SECONDS = 1000 * 365 * 24 * 3600
"""Longest duration that is shown as a number. A damaged record may contain any value, including infinity."""


def duration(seconds: float) -> str:
    """A duration as text: `42 s`, `12 min`, `3 h 05 min`, `2 d 4 h`; also for NaN and more than a thousand years."""
    if not seconds <= MAX_SHOWN_SECONDS:  # true for NaN as well
        return "an unknown time" if math.isnan(seconds) else "more than 1,000 years"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{seconds:.0f} s" if seconds < 100 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


# ---- money


SMALL_USD = 0.001
"""An amount below this is shown with two significant digits instead of four decimals, as for the cost of one sample."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in USD per million tokens. Thinking counts as completion. Without a price of cached prompt tokens, they
    cost as much as others.
    """

    prompt: float
    completion: float
    cached: float | None = None

    def usd(self, prompt_tokens: float, completion_tokens: float, cached_tokens: float = 0) -> float:
        """The cost of these tokens in USD. cached_tokens: number of the prompt tokens that came from a cache."""
        saved = 0.0 if self.cached is None else min(cached_tokens, prompt_tokens) * (self.prompt - self.cached)
        return (prompt_tokens * self.prompt + completion_tokens * self.completion - saved) / 1e6


def prices_in(text: str) -> Prices:
    """The prices in a text `IN,OUT` or `IN,OUT,CACHED`. Raises a `ValueError` that says what was expected."""
    try:
        prompt, completion, *cached = map(float, text.split(","))
    except ValueError:
        raise ValueError(
            "expected prompt and reply prices in USD per million tokens, such as 0.5,2 (not a price file)"
        ) from None
    if len(cached) > 1 or not all(0 <= price < math.inf for price in (prompt, completion, *cached)):
        raise ValueError("expected two or three prices, each 0 or more, in USD per million tokens")
    if max(cached, default=0.0) > prompt:
        raise ValueError("expected IN,OUT,CACHED with a price of cached prompt tokens of at most IN, such as 0.5,2,0.1")
    return Prices(prompt, completion, *cached)


def describe_usd(usd: float) -> str:
    """The amount with its unit, such as `12.30 USD`, `0.0123 USD` or `0.000043 USD`."""
    return f"{amount(usd)} USD"


def amount(usd: float) -> str:
    """The amount without its unit."""
    if usd >= 1:
        return f"{usd:,.2f}"
    # The second digit of 4.3e-05 is the sixth decimal.
    decimals = 1 - int(f"{usd:.0e}".partition("e")[2]) if 0 < usd < SMALL_USD else 4
    return f"{usd:.{decimals}f}"
