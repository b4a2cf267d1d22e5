"""A budget of tokens, spent in whole rounds over the questions, so that a stopped run is not biased."""

from __future__ import annotations

from collections.abc import Sequence

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

    def reaches(self, number: int) -> bool:
        """Whether the budget covers everything through round `number`."""
        if self._tokens is None:
            return True
        mean = self._counts.tokens / max(1, self._counts.finished)
        return sum(size for index, size in self._sizes.items() if index <= number) * mean <= self._tokens
