"""Tokens and money that a session spent, by the usage that servers state and the prices that the user gives."""

from __future__ import annotations

from dataclasses import dataclass

from harness.core.records import Usage


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in USD per million tokens. Thinking counts as completion; cached prompt tokens are not cheaper."""

    prompt: float
    completion: float

    def usd(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return what these tokens cost, in USD."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


@dataclass(slots=True)
class Spent:
    """Tokens of finished samples, as their replies state them.

    n_stated: samples whose replies state both numbers. n_unstated: the other samples, whose tokens are not counted.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    n_stated: int = 0
    n_unstated: int = 0

    def add(self, usage: Usage) -> None:
        """Add the usage of one more sample."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            self.n_unstated += 1
            return
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.n_stated += 1

    @property
    def per_sample(self) -> tuple[float, float] | None:
        """Mean (prompt, completion) tokens of the samples that state both; None if no sample does."""
        if not self.n_stated:
            return None
        return self.prompt_tokens / self.n_stated, self.completion_tokens / self.n_stated

    def sentence(self, prices: Prices) -> str:
        """Return a sentence on the cost in USD, and on how many samples it does not cover."""
        usd = prices.usd(self.prompt_tokens, self.completion_tokens)
        amount = f"{usd:,.2f}" if usd >= 1 else f"{usd:.4f}"
        text = f"{amount} USD for {self.prompt_tokens:,} tokens in, {self.completion_tokens:,} out"
        if self.n_unstated:
            n_all = self.n_stated + self.n_unstated
            text += f"; {self.n_unstated} of {n_all} samples state no usage and are not covered"
        return text
