"""Tokens and money that a session spent, by the usage that servers state and the prices that the user gives."""

from __future__ import annotations

from dataclasses import astuple, dataclass

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
    """Tokens that a session was billed for, as the replies state them.

    n_stated: samples whose replies state both numbers. n_unstated: the other samples, whose tokens are not counted.
    fingerprint_tokens: those of the tokens that became no sample: prompts and replies of the servers' fingerprints.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    n_stated: int = 0
    n_unstated: int = 0
    fingerprint_tokens: int = 0

    def add_fingerprint(self, usage: Usage) -> None:
        """Add the usage of one reply of a fingerprint, as far as the server states it."""
        prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
        self.prompt_tokens += prompt
        self.completion_tokens += completion
        self.fingerprint_tokens += prompt + completion

    def plus(self, more: Spent) -> Spent:
        """Return the tokens of both."""
        return Spent(*(a + b for a, b in zip(astuple(self), astuple(more), strict=True)))

    def add(self, usage: Usage) -> None:
        """Add the usage of one more sample."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            self.n_unstated += 1
            return
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.n_stated += 1

    def sentence(self, prices: Prices) -> str:
        """Return a sentence on the cost in USD, and on how many samples it does not cover."""
        usd = prices.usd(self.prompt_tokens, self.completion_tokens)
        amount = f"{usd:,.2f}" if usd >= 1 else f"{usd:.4f}"
        text = f"{amount} USD for {self.prompt_tokens:,} tokens in, {self.completion_tokens:,} out"
        if self.fingerprint_tokens:
            text += f"; {self.fingerprint_tokens:,} of these tokens are the fingerprint's"
        if self.n_unstated:
            n_all = self.n_stated + self.n_unstated
            text += f"; {self.n_unstated} of {n_all} samples state no usage and are not covered"
        return text
