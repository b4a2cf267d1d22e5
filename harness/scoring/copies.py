"""Samples of one question that are copies of each other: from a cache, or from a server that ignores seeds. Pure.

Independent draws of long replies never repeat a text. Short ones do: nearly every reply to a multiple-choice question
may be "B". So a text that stands g times among n samples of a question is compared with what independent draws allow
for its length of l characters:

    m = 2^(−`BITS` · l)                         the largest chance of one text, far above that of any real model
    allowed = max(1, n·m + 3·√(n·m·(1−m)))      as often may one text stand among n independent samples
    excess = g − allowed, where above 0         these samples are copies

A score warns where the excess is more than `MAX_SHARE` of the samples. Copies of a text count as one draw then: with
group sizes g, a question has as many independent samples as n² / Σ g² (the variance of a mean with weights g/n).
Texts are known by 32 bits of their checksum: among 64 samples of 200,000 questions one pair is equal by chance.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.records import Sample

BITS = 0.02
"""Least information in one character of a reply, in bits: a text of 35 characters has a chance of at most 62 %, one of
400 at most 0.4 %.
"""

MAX_SHARE = 0.01
"""A score warns if more than this fraction of its samples are copies beyond what independent draws allow."""

_MAX_LENGTH = (1 << 32) - 1


class Copies(msgspec.Struct, frozen=True, kw_only=True):
    """Equal texts among n_samples.

    n_equal: samples that repeat the text of another sample of their question. n_excess: those beyond what independent
    draws of such lengths allow. n_questions: questions with such copies. independent: fraction of the samples that
    count as independent draws, mean over questions; 1 without copies.
    """

    n_samples: int
    n_equal: int
    n_excess: int
    n_questions: int
    independent: float

    @property
    def many(self) -> bool:
        """Whether there are too many copies for independent samples."""
        return self.n_excess > MAX_SHARE * self.n_samples

    @property
    def sentence(self) -> str:
        """The warning of a score about copies; empty if there are few."""
        if not self.many:
            return ""
        return (
            f"{self.n_equal} of {self.n_samples} samples repeat another reply to their question word for word, "
            f"{self.n_excess} more than independent samples would: the server ignores seeds, answers from a cache, or "
            "uses temperature 0. Copies count as one sample, and the sampling interval is called at most"
        )


@dataclass(frozen=True, kw_only=True)
class EqualTexts:
    """The copies of a benchmark, and by question id the number of its independent samples, where copies are many."""

    copies: Copies
    independent: Mapping[str, int] = field(default_factory=dict)


class Texts:
    """A checksum and a length for each sample, eight bytes together."""

    def __init__(self) -> None:
        self._digest, self._length = array("I"), array("I")

    def add(self, sample: Sample) -> None:
        """Add the next sample."""
        self.add_text(sample.text or "", sample.reasoning or "")

    def add_text(self, text: str, reasoning: str = "") -> None:
        """Add the next sample, given by its text and reasoning."""
        begun = zlib.crc32(reasoning.encode("utf-8", "surrogatepass") + b"\0")
        self._digest.append(zlib.crc32(text.encode("utf-8", "surrogatepass"), begun))
        self._length.append(min(len(reasoning) + len(text), _MAX_LENGTH))

    def equal(
        self, question: NDArray[np.uint32], ids: Sequence[str], rows: NDArray[np.int64] | None = None
    ) -> EqualTexts | None:
        """The copies among the samples `rows` (None: all samples); None without a sample.

        question: (number of samples,), the number of each sample's question in `ids`.
        """
        digest, length = (np.frombuffer(column, dtype=np.uint32) for column in (self._digest, self._length))
        if rows is not None:
            digest, length = digest[rows], length[rows]
        if not len(digest):
            return None
        order = np.lexsort((digest, question))
        question, digest, length = question[order], digest[order], length[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (question[1:] != question[:-1]) | (digest[1:] != digest[:-1])
        starts = np.flatnonzero(first)
        size, of = np.diff(np.append(starts, len(order))), question[starts]
        n = np.bincount(question, minlength=len(ids))
        excess = np.maximum(0.0, size - allowed(n[of], length[starts]))
        copied = excess >= 1
        # Σ g²: a group of copies counts as one draw of weight g, every other sample as one of weight 1
        squares = np.bincount(of, weights=np.where(copied, size * size, size), minlength=len(ids))
        present = n > 0
        independent = n[present] ** 2 / squares[present]
        copies = Copies(
            n_samples=len(order),
            n_equal=int((size - 1).sum()),
            n_excess=int(excess[copied].sum()),
            n_questions=len(np.unique(of[copied])),
            independent=float((independent / n[present]).mean()),
        )
        if not copies.many:
            return EqualTexts(copies=msgspec.structs.replace(copies, independent=1.0))
        numbers = np.flatnonzero(present).tolist()
        by_id = {ids[number]: max(1, int(k)) for number, k in zip(numbers, independent.tolist(), strict=True)}
        return EqualTexts(copies=copies, independent=by_id)


def allowed(n: NDArray[np.int64], length: NDArray[np.uint32]) -> NDArray[np.float64]:
    """How often one text of this length may stand among n independent samples; see the module."""
    chance = np.exp2(-BITS * length)
    return np.asarray(np.maximum(1.0, n * chance + 3 * np.sqrt(n * chance * (1 - chance))))
