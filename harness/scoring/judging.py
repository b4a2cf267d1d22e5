"""What a score records of its judge: who was in force, whether it has ended, and what its replies took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from harness.core.inert import visible
from harness.core.nouns import Prices, count_noun, usd_in_words
from harness.core.records import Sample

MAX_NAME_CHARS = 100
"""A judge's name is cut to this length in a sentence."""


class JudgeCost(msgspec.Struct, frozen=True):
    """What a judge's replies about a benchmark took in all sessions, also those that a later reply replaced.

    requests: those that brought the replies, with the failed ones before them. n_stated: replies whose server states
    both numbers of tokens; the other replies are left out of the tokens and the money. usd: at the prices that were
    given; None without, and if no reply has stated tokens.
    """

    replies: int = 0
    requests: int = 0
    n_stated: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = None

    @classmethod
    def of(cls, replies: Iterable[Sample], prices: Prices | None) -> JudgeCost:
        """What these replies took; a request that brought no reply is in no count."""
        n = n_requests = n_stated = prompt = completion = 0
        for reply in replies:
            n, n_requests = n + 1, n_requests + reply.attempts
            tokens_in, tokens_out = reply.usage.prompt_tokens, reply.usage.completion_tokens
            if tokens_in is not None and tokens_out is not None:
                n_stated, prompt, completion = n_stated + 1, prompt + tokens_in, completion + tokens_out
        is_known = prices is not None and (n_stated or not n)  # replies of unknown length were not free
        return cls(
            n, n_requests, n_stated, prompt, completion, prices.usd(prompt, completion) if prices and is_known else None
        )

    def plus(self, more: JudgeCost) -> JudgeCost:
        """The sum of both; without the money if one has none."""
        usd = None if self.usd is None or more.usd is None else self.usd + more.usd
        ours, theirs = msgspec.structs.asdict(self), msgspec.structs.asdict(more)
        return JudgeCost(**{name: ours[name] + theirs[name] for name in ours if name != "usd"}, usd=usd)

    @property
    def words(self) -> str:
        """Requests, tokens, and money if it is known."""
        requests = count_noun(self.requests, "request")
        if not self.n_stated and self.replies:
            return f"{requests}, tokens unknown, since the server states none"
        partly = f" (of {self.n_stated:,} replies whose server states them)" if self.n_stated < self.replies else ""
        money = "" if self.usd is None or not self.n_stated else f", {usd_in_words(self.usd)}"
        tokens = f"{self.prompt_tokens:,} prompt tokens, {self.completion_tokens:,} completion tokens"
        return f"{requests}, {tokens}{partly}{money}"


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """The judge by whose rules a benchmark was scored, also if it decided no sample.

    name: of the model and its prompt, as in the grader of a sample that it decided. settings: its options that decide
    verdicts, by name. ended: it has replied about all answers in its scope. mute: it gave no verdict on any. cost: None
    in a score that was stored while the judge was asked.
    """

    name: str
    settings: dict[str, Any]
    ended: bool
    mute: bool = False
    cost: JudgeCost | None = None

    def doubt(self, which: str) -> str:
        """A sentence if the score is not yet the judge's; else empty. which: whose judging, such as "the run"."""
        name = visible(self.name.removeprefix("judge:"), MAX_NAME_CHARS)
        if not self.ended:
            return (
                f"the judging of {which} by {name} has not ended: answers on which it has not ruled keep the verdict "
                "without the judge. The same `harness score` command goes on with it"
            )
        if self.mute:
            return (
                f"the judge {name} gave no verdict at all on {which}, so the verdicts without the judge stand. The "
                "same `harness score` command asks it again"
            )
        return ""
