"""Rows of numbers, one for each sample, grouped by question in little memory, however many rows there are.

    arrival      rows as they came                      a `Spilled`
    grouped      1. blocks of `BLOCK_ROWS`, each sorted by question, in a second `Spilled`
                 2. for each range of questions that has about as many rows: its part of every block, sorted together

So memory holds two blocks, or the rows of the largest question, and eight bytes for each question. The sort is stable:
rows of a question keep their order of arrival.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.core.packed import Spilled

BLOCK_ROWS = 1 << 14
"""Rows that are sorted together in memory."""


class FixedRows:
    """Growing rows of the same numeric fields; beyond some MB they lie in a file without a name.

    fields: name → type code of the `struct` module, such as `I` for 32 bits without a sign; `grouped` needs a field
    `question`.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.type = np.dtype([(name, f"<{code}") for name, code in fields.items()])
        self._fields = fields
        self._pack = struct.Struct("<" + "".join(fields.values())).pack
        self._stored = Spilled()
        self._recent = bytearray()

    def __len__(self) -> int:
        return (len(self._stored) + len(self._recent)) // self.type.itemsize

    def append(self, *values: float) -> None:
        """Put a row at the end; its values come in the order of the fields. Raises `StoreError` if the disk is full."""
        self._recent += self._pack(*values)
        if len(self._recent) >= BLOCK_ROWS * self.type.itemsize:
            self._store()

    def extend(self, rows: NDArray[Any]) -> None:
        """Put `rows`, an array of `type`, at the end. Raises `StoreError` if the disk is full."""
        self._store()
        self._stored.append(rows.tobytes())

    def _store(self) -> None:
        self._stored.append(bytes(self._recent))
        self._recent = bytearray()

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """(end − begin,): these rows as a read-only array of `type`. Raises `StoreError`."""
        if self._recent:
            self._store()
        size = self.type.itemsize
        return np.frombuffer(self._stored.read(begin * size, (end - begin) * size), dtype=self.type)

    def blocks(self) -> Iterator[NDArray[Any]]:
        """All rows in order of arrival, at most `BLOCK_ROWS` at a time."""
        for begin in range(0, len(self), BLOCK_ROWS):
            yield self.read(begin, min(begin + BLOCK_ROWS, len(self)))

    def grouped(self, n_questions: int) -> Iterator[NDArray[Any]]:
        """All rows in ascending order of the field `question`, all rows of some questions at a time.

        n_questions: every value of `question` is below it.
        """
        counts = np.zeros(n_questions, dtype=np.int64)
        for block in self.blocks():
            counts += np.bincount(block["question"], minlength=n_questions)
        firsts = _firsts(np.cumsum(counts))
        in_blocks, cuts = FixedRows(self._fields), []
        for block in self.blocks():
            ordered = block[np.argsort(block["question"], kind="stable")]
            cuts.append(len(in_blocks) + np.searchsorted(ordered["question"], firsts))
            in_blocks.extend(ordered)
        for number in range(len(firsts) - 1):
            rows = np.concatenate([in_blocks.read(int(cut[number]), int(cut[number + 1])) for cut in cuts])
            yield rows[np.argsort(rows["question"], kind="stable")]


def _firsts(ends: NDArray[np.int64]) -> list[int]:
    """The first question of each range, and at the end the number of questions; only [0] if there are no rows.

    A range has at most `BLOCK_ROWS` rows, or is one question. ends: of each question, the number of rows up to its last
    one.
    """
    firsts, begin = [0], 0
    if not len(ends) or not ends[-1]:
        return firsts
    while firsts[-1] < len(ends):
        first = max(int(np.searchsorted(ends, begin + BLOCK_ROWS, side="right")), firsts[-1] + 1)
        firsts.append(first)
        begin = int(ends[first - 1])
    return firsts
