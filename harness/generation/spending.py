"""Tokens and money that a session spent, by the usage that servers state (else by bounds) and the user's prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

from harness.core.money import Prices, amount, usd_in_words
from harness.core.nouns import count_noun

Sure = Literal["stated", "at most", "about"]
"""How sure a count of tokens is: stated by the server, the most that it can be, or an estimate, since no max_tokens
bounds the reply.
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens that a session was billed for: as the replies state them, else the most that they can be.

    n_stated: replies of samples that state both numbers. n_bounded: requests without them (one that failed may have
    brought a part of a reply), which count with the most that they can be; n_estimated: those that nothing bounds.
    fingerprint_tokens: those of the servers' fingerprints. unsure_prompt_tokens, unsure_completion_tokens: how many of
    the tokens are there only because nothing rules them out.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    n_stated: int = 0
    n_bounded: int = 0
    n_estimated: int = 0
    fingerprint_tokens: int = 0
    unsure_prompt_tokens: int = 0
    unsure_completion_tokens: int = 0

    @classmethod
    def of_all(cls, counts: Iterable[Mapping[str, int]]) -> Spent:
        """The sum of what several sessions logged, by the names of these fields; other names are ignored."""
        each = list(counts)
        return cls(**{count.name: sum(of.get(count.name, 0) for of in each) for count in fields(cls)})

    @classmethod
    def request(
        cls, prompt: int, completion: int, sure: Sure = "stated", unsure_prompt: int = 0, unsure_completion: int = 0
    ) -> Spent:
        """The tokens of one request. sure: of the less sure of both counts."""
        n_stated, n_bounded, n_estimated = (int(sure == each) for each in ("stated", "at most", "about"))
        return cls(prompt, completion, n_stated, n_bounded, n_estimated, 0, unsure_prompt, unsure_completion)

    @property
    def for_fingerprint(self) -> Spent:
        """The same tokens as those of a fingerprint, which makes no sample."""
        return replace(self, n_stated=0, fingerprint_tokens=self.prompt_tokens + self.completion_tokens)

    def plus(self, more: Spent) -> Spent:
        """Return the tokens of both."""
        return Spent(*(a + b for a, b in zip(astuple(self), astuple(more), strict=True)))

    @property
    def sure(self) -> Sure:
        """How sure the tokens are: as the least sure of the replies."""
        return "about" if self.n_estimated else "at most" if self.n_bounded else "stated"

    @property
    def hedge(self) -> str:
        """What stands before the cost: "about " or "at most " unless all replies state their usage."""
        return "" if self.sure == "stated" else f"{self.sure} "

    def sentence(self, prices: Prices | None) -> str:
        """Return a sentence on the tokens, on the cost in USD if there are prices, and on how exact the count is."""
        if prices is None:
            return f"{self.hedge}{self.in_tokens}"
        most = prices.usd(self.prompt_tokens, self.completion_tokens)
        unsure = prices.usd(self.unsure_prompt_tokens, self.unsure_completion_tokens)
        # A log of an older version does not say which tokens are unsure.
        least = f"at least {amount(most - unsure)}, " if unsure and self.sure == "at most" else ""
        return f"{least}{self.hedge}{usd_in_words(most)} for {self.hedge}{self.in_tokens}"

    @property
    def in_tokens(self) -> str:
        """The tokens in words, and how many replies they are no exact count of."""
        text = f"{self.prompt_tokens:,} tokens in, {self.completion_tokens:,} out"
        if self.fingerprint_tokens:
            text += f"; {self.fingerprint_tokens:,} of these tokens are the fingerprint's"
        if self.n_bounded:
            requests = count_noun(self.n_bounded, "request")
            text += f"; {requests} without stated usage count with the most tokens possible"
        if self.n_estimated:
            requests = count_noun(self.n_estimated, "request")
            text += f"; {requests} without stated usage and without max_tokens are estimated"
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
