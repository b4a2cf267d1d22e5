"""Tokens and money that a session spent, by the usage that servers state (else by bounds) and the user's prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.core.money import Prices, usd_in_words
from harness.core.nouns import count_noun
from harness.core.records import Sample


def completion_tokens(sample: Sample) -> int:
    """Length of a sample for planning: as stated, else the number of events, else estimated from characters."""
    stated = sample.usage.completion_tokens
    return stated or sample.timing.events or (len(sample.text or "") + len(sample.reasoning or "")) // 4 + 1


def tokens_before(sample: Sample) -> int:
    """Completion tokens that were written before the sample's last request."""
    return sample.salvaged_at[-1].tokens if sample.salvaged_at else 0


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens that a session was billed for: as the replies state them, else the most that they can be.

    n_unstated: requests whose usage is unknown, such as one that failed in the middle of its reply. They count with the
    most tokens possible, or with an estimate if no max_tokens bounds the reply.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    n_unstated: int = 0

    @classmethod
    def of_all(cls, counts: Iterable[Mapping[str, int]]) -> Spent:
        """The sum of what several sessions logged, by the names of these fields or those of older versions."""
        total: Counter[str] = Counter()
        for of in counts:
            total.update(of)
        unstated = total["n_unstated"] + total["n_bounded"] + total["n_estimated"]
        return cls(total["prompt_tokens"], total["completion_tokens"], unstated)

    def plus(self, *more: Spent) -> Spent:
        """Return the tokens of all."""
        counts = [(each.prompt_tokens, each.completion_tokens, each.n_unstated) for each in (self, *more)]
        return Spent(*map(sum, zip(*counts, strict=True)))

    @property
    def hedge(self) -> str:
        """What stands before the cost: "at most " unless all replies state their usage."""
        return "at most " if self.n_unstated else ""

    def sentence(self, prices: Prices) -> str:
        """Return a sentence on the cost in USD, on the tokens, and on how exact the count is."""
        usd = prices.usd(self.prompt_tokens, self.completion_tokens)
        return f"{self.hedge}{usd_in_words(usd)} for {self.hedge}{self.in_tokens}"

    @property
    def in_tokens(self) -> str:
        """The tokens in words, and how many requests they are no exact count of."""
        text = f"{self.prompt_tokens:,} tokens in, {self.completion_tokens:,} out"
        if self.n_unstated:
            text += f"; {count_noun(self.n_unstated, 'request')} without stated usage count with the most possible"
        return text


@dataclass(slots=True)
class RunCosts:
    """What the samples of one run have cost in a command, from which the cost of its next samples is expected.

    n_begun, n_finished: samples. longest: completion tokens of the longest reply. spent: on the finished samples.
    """

    n_begun: int = 0
    n_finished: int = 0
    longest: int = 0
    spent: Spent = field(default_factory=Spent)


@dataclass(slots=True)
class Account:
    """What the sessions of one command have used of its budget: the stages of a run, and all candidates of a race.

    A session without a budget books nothing. spent, usd: by all requests; the sessions may have different prices.
    runs: run folder → what its samples have cost.
    """

    spent: Spent = field(default_factory=Spent)
    usd: float = 0.0
    runs: dict[Path, RunCosts] = field(default_factory=dict)

    def of(self, folder: Path) -> RunCosts:
        """The costs of the run in `folder`, to which a session adds."""
        return self.runs.setdefault(folder, RunCosts())

    def add(self, spent: Spent, prices: Prices | None) -> None:
        """Book tokens that a session with these prices was billed for."""
        self.spent = self.spent.plus(spent)
        self.usd += prices.usd(spent.prompt_tokens, spent.completion_tokens) if prices is not None else 0.0

    @property
    def has_begun(self) -> bool:
        """Whether a sample was asked for."""
        return any(run.n_begun for run in self.runs.values())
