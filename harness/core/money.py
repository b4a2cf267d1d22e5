"""Prices of tokens, and amounts of money in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

SMALL_USD = 0.001
"""An amount below this has two significant digits in place of four decimals: it may be the cost of one sample."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in USD per million tokens. Thinking counts as completion; cached prompt tokens are not cheaper."""

    prompt: float
    completion: float

    def usd(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return what these tokens cost, in USD."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


def prices_in(text: str) -> Prices:
    """The prices that a text `IN,OUT` states. Raises `ValueError` that says what was expected."""
    try:
        prompt, completion = map(float, text.split(","))
    except ValueError:
        raise ValueError(
            "expected USD per million tokens of prompts and of replies, such as 0.5,2; no file of prices is read"
        ) from None
    if not (0 <= prompt < math.inf and 0 <= completion < math.inf):
        raise ValueError("expected two prices of 0 or more in USD per million tokens")
    return Prices(prompt, completion)


def usd_in_words(usd: float) -> str:
    """The amount with its unit, such as `12.30 USD`, `0.0123 USD` or `0.000043 USD`."""
    return f"{amount(usd)} USD"


def amount(usd: float) -> str:
    """The amount without its unit."""
    if usd >= 1:
        return f"{usd:,.2f}"
    # 4.3e-05 has its second digit in the sixth decimal.
    decimals = 1 - int(f"{usd:.0e}".partition("e")[2]) if 0 < usd < SMALL_USD else 4
    return f"{usd:.{decimals}f}"
