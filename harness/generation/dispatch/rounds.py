"""Whether a session that works in rounds goes on to the next one, so that a stopped run is not biased.

A budget of tokens or money is spent in whole rounds over the questions.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.generation.dispatch.counts import Counts
from harness.generation.dispatch.ending import Ending
from harness.generation.plan import Order, Owed
from harness.generation.settings import RunSettings


class Rounds:
    """Ends a session at a whole round: the next one starts only if what it is expected to use still fits.

    What is running when a round ends is counted at the mean so far; samples that state no usage at the mean of the
    others, and at the events counted if none states any.
    """

    def __init__(
        self,
        settings: RunSettings,
        counts: Counts,
        rows: Sequence[Owed],
        ending: Ending,
    ) -> None:
        self._settings = settings
        self._counts = counts
        self._ending = ending
        self._sizes: dict[int, int] = {}
        for row in rows:
            for index in row.indices:
                self._sizes[index] = self._sizes.get(index, 0) + 1

    @property
    def order(self) -> Order:
        """The order in which the session must ask."""
        settings = self._settings
        limited = settings.budget_tokens is not None or settings.budget_usd is not None
        return "rounds" if limited else settings.order

    def may_start(self, number: int) -> bool:
        """Asked before each round but the first. After False nothing more is handed out, and the ending says why."""
        if why := self._exceeded_by(number):
            self._ending.by_rule(why)
            return False
        return True

    def _exceeded_by(self, number: int) -> str:
        """Why round `number` may not start; empty if the budget covers everything through it."""
        tokens, usd, prices = self._settings.budget_tokens, self._settings.budget_usd, self._settings.prices
        n_samples = sum(size for index, size in self._sizes.items() if index <= number)
        counted = self._counts.tokens / max(1, self._counts.finished)
        if tokens is not None and n_samples * counted > tokens:
            return f"the budget of {tokens} tokens reaches for no other round"
        if usd is not None and prices is not None:
            each = self._counts.spent.per_sample or (0.0, counted)
            if n_samples * prices.usd(*each) > usd:
                return f"the budget of {usd:g} USD reaches for no other round"
        return ""
