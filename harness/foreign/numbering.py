"""Numbers the samples of a file of outputs: a sample keeps the number that the file states, in any order of the rows.

A sample gets the lowest free number of its question where the file states none, and where an earlier sample of the
question has the stated number.
"""

from __future__ import annotations

from collections import Counter

from harness.core.nouns import count_noun

MAX_INDEX = 1_000_000
"""Bound of a sample's number in a file; a number that is not below it counts as none."""


class SampleNumbers:
    """The numbers given to the samples of one pass over a file, by question."""

    def __init__(self) -> None:
        # All numbers below `_lowest` are given, and those in `_ahead`. Samples in order leave `_ahead` empty.
        self._lowest: Counter[str] = Counter()
        self._ahead: dict[str, set[int]] = {}
        self._n_renumbered = 0
        self._first_renumbered = ""

    def give(self, question_id: str, stated: int | None, where: str = "") -> int:
        """Return the number of the next sample of a question. stated: in the file, at least 0. where: its place."""
        lowest = self._lowest[question_id]
        ahead = self._ahead.get(question_id)
        if stated is not None and stated != lowest:
            if lowest < stated < MAX_INDEX and (ahead is None or stated not in ahead):
                self._ahead.setdefault(question_id, set()).add(stated)
                return stated
            self._n_renumbered += 1
            self._first_renumbered = self._first_renumbered or where
        following = lowest + 1
        while ahead and following in ahead:
            ahead.remove(following)
            following += 1
        self._lowest[question_id] = following
        return lowest

    @property
    def sentence(self) -> str:
        """The samples that lost the number that the file states, in words; empty if none did."""
        if not self._n_renumbered:
            return ""
        return (
            f"{count_noun(self._n_renumbered, 'sample')} could not keep the number that the file states, the first at "
            f"{self._first_renumbered}: an earlier sample of the question has that number, or it is not below "
            f"{MAX_INDEX:,}; such a sample got the lowest free number of its question"
        )
