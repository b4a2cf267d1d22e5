"""Whether one run repeats the replies of another: the equal replies of two runs, beyond what independent runs have.

A server that derives its draws from the run seed gives both runs the same reply under the same sample number. So the
pairs (sample i of A, sample i of B) of a question are compared. Chance allows the larger of two numbers:

| what chance allows | assumes |
| --- | --- |
| Σ 2^(−l/50) over the pairs, l the length of the shorter reply | that a model writes no text more often than so |
| as many as the pairs (i, j ≠ i) of the same question have | nothing: for independent runs, numbers are labels |

For the second, M of the n² pairs of a question are equal. If the sample numbers of B are put in a random order, M/n
pairs (i, i) are expected to be equal, with the variance Σ d² / (n − 1), where d is the pairs' matrix of 0 and 1 with
the means of its rows and columns taken out (Hoeffding 1951, Annals of Mathematical Statistics 22:558). If no pair
(i, j ≠ i) is equal, as with long replies, M only counts what is to be judged. Then fewer than 3 of such pairs are to be
expected (the rule of three, 95 %). Both counts get three standard deviations more. A question with a single pair has
the first count only.

Where all replies to a question are alike in both runs, for every question, as at temperature 0, other numbers tell
nothing of chance; the first count decides alone. The table `shared-replies` of `bench/simulate.py` has the rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.core.nouns import count_noun
from harness.core.records import Sample
from harness.scoring.anomalies import COPY_BITS, MAX_COPIES_SHARE


@dataclass(frozen=True, kw_only=True)
class SharedReplies:
    """Replies of two runs to the same questions, pair by pair.

    n_pairs: pairs compared. n_equal: those of them that are equal. n_excess: those beyond what independent runs have.
    """

    n_pairs: int
    n_equal: int
    n_excess: float

    @property
    def many(self) -> bool:
        """Whether there are too many equal pairs for independent runs."""
        return self.n_excess >= 1 and self.n_excess > MAX_COPIES_SHARE * self.n_pairs

    @property
    def most(self) -> bool:
        """Whether more than half of the pairs are equal."""
        return 2 * self.n_equal > self.n_pairs

    @property
    def sentence(self) -> str:
        """How many replies are equal."""
        return (
            f"{self.n_equal:,} of {count_noun(self.n_pairs, 'reply', 'replies')} that were compared are the same in "
            f"both runs, word for word, {int(self.n_excess):,} more than independent runs would have"
        )


def shared_replies(questions: Iterable[Sequence[tuple[Sample, Sample]]], *, greedy: bool = False) -> SharedReplies:
    """Count the equal replies. A reply that max_tokens cut equals one that goes on.

    questions: of each question, a sample of each run for each number that both have. greedy: both runs ask for the
    likeliest tokens, so that replies are alike whatever their number.
    """
    by_length, by_number = _ByLength(), _ByNumber()
    n_pairs, n_equal, varies = 0, 0, False
    for pairs in questions:
        ours, theirs = ([_ReplyText.of(sample) for sample in side] for side in zip(*pairs, strict=True))
        chances = [math.exp2(-COPY_BITS * min(len(a.text), len(b.text))) for a, b in zip(ours, theirs, strict=True)]
        equal = _equal(ours, theirs)
        by_length.add(chances)
        by_number.add(equal, chances)
        n_pairs += len(pairs)
        n_equal += int(np.trace(equal))
        varies = varies or any(not side[0].equals(reply) for side in (ours, theirs) for reply in side)
    allowed = max(by_length.limit, by_number.limit) if varies and not greedy else by_length.limit
    return SharedReplies(n_pairs=n_pairs, n_equal=n_equal, n_excess=max(0.0, n_equal - allowed))


@dataclass(frozen=True)
class _ReplyText:
    """text: reasoning and text. cut: max_tokens ended the reply."""

    text: str
    cut: bool

    @classmethod
    def of(cls, sample: Sample) -> _ReplyText:
        # The zero byte tells reasoning "a" with text "b" from no reasoning with text "ab".
        return cls("\0".join(filter(None, (sample.reasoning, sample.text))), sample.finish_reason == "length")

    def equals(self, reply: _ReplyText) -> bool:
        """Whether the texts are equal, as far as max_tokens let them be written."""
        if len(self.text) > len(reply.text):
            return reply.equals(self)
        return reply.text.startswith(self.text) if self.cut else reply.text == self.text


def _equal(
    ours: Sequence[_ReplyText], theirs: Sequence[_ReplyText]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Which replies of A, the rows, equal which of B: 1 or 0. Only a cut reply is compared with each of the others."""
    numbers: dict[str, int] = {}
    rows, columns = ([numbers.setdefault(reply.text, len(numbers)) for reply in side] for side in (ours, theirs))
    equal = np.equal.outer(rows, columns).astype(float)
    for row, reply in enumerate(ours):
        if reply.cut:
            equal[row] = list(map(reply.equals, theirs))
    for column, reply in enumerate(theirs):
        if reply.cut:
            equal[:, column] = list(map(reply.equals, ours))
    return equal


class _ByLength:
    """How many pairs chance allows to be equal, by the length of their replies."""

    def __init__(self) -> None:
        self.expected = self.variance = 0.0

    def add(self, chances: Sequence[float]) -> None:
        """Add pairs that are equal with these probabilities."""
        self.expected += math.fsum(chances)
        self.variance += math.fsum(chance * (1 - chance) for chance in chances)

    @property
    def limit(self) -> float:
        """The expected number and three standard deviations; at least one pair."""
        return max(1.0, self.expected + 3 * math.sqrt(self.variance))


class _ByNumber:
    """How many pairs chance allows to be equal, by the pairs of other numbers; questions with one pair: by length."""

    def __init__(self) -> None:
        self._single = _ByLength()
        self._expected = self._variance = 0.0
        self._n_pairs = self._n_others = self._n_equal_others = 0

    def add(self, equal: np.ndarray[tuple[int, int], np.dtype[np.float64]], chances: Sequence[float]) -> None:
        """Add a question. equal: which samples of A, the rows, equal which of B. chances: of the pairs on the diagonal,
        by length.
        """
        n = len(equal)
        if n == 1:
            self._single.add(chances)
            return
        rows, columns, total = equal.sum(axis=1), equal.sum(axis=0), float(equal.sum())
        squares = total - float(rows @ rows + columns @ columns) / n + (total / n) ** 2  # Σ d², multiplied out
        self._expected += total / n
        self._variance += max(0.0, squares) / (n - 1)
        self._n_pairs += n
        self._n_others += n * (n - 1)
        self._n_equal_others += int(total - np.trace(equal))

    @property
    def limit(self) -> float:
        """The expected number and three standard deviations."""
        expected, variance = self._expected, self._variance
        if self._n_others and not self._n_equal_others:
            expected = variance = 3 * self._n_pairs / self._n_others
        return expected + self._single.expected + 3 * math.sqrt(variance + self._single.variance)
