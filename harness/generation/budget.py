"""A budget of tokens, spent in whole rounds over the questions, so that a stopped run is not biased."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.generation.network import Counts
from harness.generation.plan import Owed


class Budget:
    """Ends a session at a whole round: the next one starts only if its expected tokens still fit.

    What is running when a round ends is counted at the mean length so far.
    """

    def __init__(self, tokens: int | None, counts: Counts, rows: Sequence[Owed]) -> None:
        self._tokens = tokens
        self._counts = counts
        self._sizes: dict[int, int] = {}
        for row in rows:
            for index in row.indices:
                self._sizes[index] = self._sizes.get(index, 0) + 1
        self.on_end: Callable[[str], None] | None = None

    def may_start(self, number: int) -> bool:
        if self._tokens is None:
            return True
        mean = self._counts.tokens / max(1, self._counts.finished)
        through = sum(size for index, size in self._sizes.items() if index <= number) * mean
        if through <= self._tokens:
            return True
        if self.on_end is not None:
            self.on_end(f"the budget of {self._tokens} tokens does not reach for another round")
        return False
