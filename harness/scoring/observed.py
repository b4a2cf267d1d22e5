"""What is kept of a benchmark's samples beside their grades: a few numbers each, in columns. Their texts are not.

Eight bytes a number, and none for what no sample states; columns beyond tens of MB stand in files without a name.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from harness.core.packed import Spilled
from harness.core.records import Anomaly, Sample
from harness.scoring.anomalies import signs_of

Rows = NDArray[np.int64]
"""Samples by their numbers in the order in which they were told."""

_SIGNS: tuple[Anomaly, ...] = get_args(Anomaly)

_SHOWN = [tuple(sign for bit, sign in enumerate(_SIGNS) if bits >> bit & 1) for bits in range(1 << len(_SIGNS))]
"""By the bits of a row."""

_MOST = float(1 << 53)
"""Larger counts are a server's nonsense, and not exact as a float."""


_PIECE = 8192
"""Numbers that are gathered before they are put aside."""


class Column:
    """A number a row, NaN for none. Rows behind the last that states one take no memory."""

    __slots__ = ("_aside", "_n", "_recent")

    def __init__(self) -> None:
        self._aside = Spilled()
        self._recent = array("d")
        self._n = 0

    @property
    def stated(self) -> bool:
        """Some row states a number."""
        return self._n > 0

    def put(self, row: int, value: float | None) -> None:
        """State the number of `row`, which is above all that were stated."""
        if value is not None:
            if self._n < row:
                self._recent.frombytes(np.full(row - self._n, np.nan).tobytes())
            self._recent.append(min(value, _MOST))
            self._n = row + 1
            if len(self._recent) >= _PIECE:
                self._put_aside()

    def _put_aside(self) -> None:
        self._aside.append(self._recent.tobytes())
        self._recent = array("d")

    def of(self, rows: Rows) -> NDArray[np.float64]:
        """Of each of `rows`."""
        if self._recent:
            self._put_aside()
        values = np.frombuffer(self._aside.read(0, len(self._aside)))
        if len(rows) and len(values) > int(rows.max()):
            return values[rows]
        found = np.full(len(rows), np.nan)
        there = rows < len(values)
        found[there] = values[rows[there]]
        return found


class Flags:
    """Eight bits a row."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values = bytearray()

    def put(self, bits: Sequence[bool]) -> None:
        """Those of the next row."""
        self._values.append(sum(1 << place for place, bit in enumerate(bits) if bit))

    def __getitem__(self, row: int) -> int:
        return self._values[row]

    def of(self, rows: Rows, bit: int) -> NDArray[np.bool_]:
        """Whether the bit is set, of each of `rows`."""
        return (np.frombuffer(self._values, dtype=np.uint8)[rows] >> bit & 1).astype(bool)


class Observed:
    """Told of each sample of a benchmark, each key once. A row a sample."""

    def __init__(self) -> None:
        self.n = 0
        self.endpoints: dict[str, int] = {}
        """Number of each endpoint's URL, in the order of their first samples."""
        self.started, self.total = Column(), Column()
        self.first_token, self.last_token = Column(), Column()
        self.gap_p50, self.gap_p99, self.lag = Column(), Column(), Column()
        self.attempts = Column()
        self.prompt_tokens, self.completion_tokens, self.reasoning_tokens = Column(), Column(), Column()
        self._endpoint = array("I")
        self._facts, self._signs = Flags(), Flags()

    def observe(self, sample: Sample) -> int:
        """The row of `sample`, the next one."""
        row, timing, usage = self.n, sample.timing, sample.usage
        self.n += 1
        self._endpoint.append(self.endpoints.setdefault(sample.endpoint, len(self.endpoints)))
        self.started.put(row, timing.started)
        self.total.put(row, timing.total)
        self.first_token.put(row, timing.first_token)
        self.last_token.put(row, timing.last_token)
        self.gap_p50.put(row, timing.gap_p50)
        self.gap_p99.put(row, timing.gap_p99)
        self.lag.put(row, timing.lag)
        self.attempts.put(row, sample.attempts if sample.attempts > 1 else None)
        self.prompt_tokens.put(row, usage.prompt_tokens)
        self.completion_tokens.put(row, usage.completion_tokens)
        self.reasoning_tokens.put(row, usage.reasoning_tokens)
        near = any(not seam.exact for seam in sample.salvaged_at)
        self._facts.put(
            (timing.clock == "kernel", bool(sample.reasoning), bool(sample.salvaged_at), near, sample.foreign)
        )
        shown = signs_of(sample)
        self._signs.put([sign in shown for sign in _SIGNS])
        return row

    def endpoint(self, rows: Rows) -> NDArray[np.uint32]:
        """The number of the endpoint, of each of `rows`."""
        return np.frombuffer(self._endpoint, dtype=np.uint32)[rows]

    def stamped_by_kernel(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether the kernel gave the times of receipt."""
        return self._facts.of(rows, 0)

    def reasoned(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether reasoning was sent."""
        return self._facts.of(rows, 1)

    def salvaged(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether it went on after an interruption."""
        return self._facts.of(rows, 2)

    def nearly(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether it went on, once at least, over text that was turned into tokens anew."""
        return self._facts.of(rows, 3)

    def foreign(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether another tool made it."""
        return self._facts.of(rows, 4)

    def shown(self, rows: Rows) -> dict[Anomaly, NDArray[np.bool_]]:
        """Signs of something wrong: for each, which of `rows` show it."""
        return {sign: self._signs.of(rows, bit) for bit, sign in enumerate(_SIGNS)}

    def anomalies(self, row: int) -> tuple[Anomaly, ...]:
        """The signs that one sample shows."""
        return _SHOWN[self._signs[row]]
