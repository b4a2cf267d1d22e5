"""A set of keys that takes memory by questions, not by samples: a bit for each index of a question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import chain

from harness.core.records import Key

_BITS = 4096
"""Indices below it are bits of a number; those above, which no plan reaches by far, are kept one by one."""


class KeySet(Set[Key]):
    """Keys of one benchmark. Like a set in all but that it hashes not."""

    __slots__ = ("_bits", "_far", "_n")

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._bits: dict[str, int] = {}
        self._far: set[Key] = set()
        self._n = 0
        self.update(keys)

    def add(self, key: tuple[str, int]) -> bool:
        """Add `key`; False if it was there."""
        question_id, index = key
        if not 0 <= index < _BITS:
            if key in self._far:
                return False
            self._far.add(Key(question_id, index))
        else:
            bits = self._bits.get(question_id, 0)
            bit = 1 << index
            if bits & bit:
                return False
            self._bits[question_id] = bits | bit
        self._n += 1
        return True

    def update(self, keys: Iterable[Key]) -> None:
        """Add all of `keys`."""
        for key in keys:
            self.add(key)

    def copy(self) -> KeySet:
        """The same keys, in a set of their own."""
        twin = KeySet()
        twin._bits, twin._far, twin._n = dict(self._bits), set(self._far), self._n
        return twin

    def beyond(self, samples: int) -> Iterator[Key]:
        """Those of an index of at least `samples`."""
        some = (question_id for question_id, bits in self._bits.items() if bits >> samples)
        near = (Key(name, i) for name in some for i in range(samples, _BITS) if self._bits[name] >> i & 1)
        return chain(near, (key for key in self._far if key[1] >= samples))

    def count_within(self, question_ids: Iterable[str], samples: int) -> int:
        """How many keys are of these questions, each of which is given once, and of the indices 0 … samples-1."""
        mask = (1 << min(samples, _BITS)) - 1
        ids = set(question_ids)
        far = (0 <= key[1] < samples and key[0] in ids for key in self._far)
        return sum((self._bits.get(name, 0) & mask).bit_count() for name in ids) + sum(far)

    def lacks(self, question_id: str, samples: int) -> tuple[int, ...]:
        """Those of the indices 0 … samples-1 of a question that are not here."""
        bits = self._bits.get(question_id, 0)
        if samples <= _BITS and bits == (1 << samples) - 1:
            return ()
        near = (i for i in range(min(samples, _BITS)) if not bits >> i & 1)
        far = (i for i in range(_BITS, samples) if Key(question_id, i) not in self._far)
        return (*near, *far)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, tuple) or len(key) != 2:
            return False
        question_id, index = key
        if not 0 <= index < _BITS:
            return key in self._far
        return bool(self._bits.get(question_id, 0) >> index & 1)

    def __iter__(self) -> Iterator[Key]:
        for question_id, bits in self._bits.items():
            while bits:
                index = (bits & -bits).bit_length() - 1
                yield Key(question_id, index)
                bits &= bits - 1
        yield from self._far

    def __len__(self) -> int:
        return self._n
