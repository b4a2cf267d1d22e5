"""Which samples a run expects and which of them are missing: the basis for resuming a run. Pure.

A `Plan` defines the keys that a run expects, a `KeySet` has the stored keys by question, `missing_samples` returns the
difference, and a `Task` is one sample.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Set
from typing import NamedTuple

import msgspec

from harness.core import codec
from harness.core.records import MAX_SAMPLES, Key


class KeySet(Set[Key]):
    """The keys of one benchmark, stored as one number per question, whose set bits are the sample indices.

    A set of numbers per question would take at least 200 bytes. Indices outside any plan are stored separately, since a
    damaged file may have any index.
    """

    __slots__ = ("_beyond", "_bits")

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._bits: dict[str, int] = {}
        self._beyond: dict[str, set[int]] = {}
        for key in keys:
            self.add(key)

    def add(self, key: tuple[str, int]) -> bool:
        """Add `key`; return False if it was there already."""
        if key in self:
            return False
        name, index = key
        if 0 <= index < MAX_SAMPLES:
            self._bits[name] = self._bits.get(name, 0) | 1 << index
        else:
            self._beyond.setdefault(name, set()).add(index)
        return True

    def copy(self) -> KeySet:
        """A copy of the set."""
        twin = KeySet()
        twin._bits, twin._beyond = dict(self._bits), {name: set(indices) for name, indices in self._beyond.items()}
        return twin

    def count_within(self, question_ids: Iterable[str], samples: float) -> int:
        """The number of keys of these distinct questions with indices 0 … `n_planned`-1."""
        return sum(
            (self._bits.get(name, 0) & (1 << min(planned, MAX_SAMPLES)) - 1).bit_count()
            + sum(0 <= index < planned for index in self._beyond.get(name, ()))
            for name in question_ids
            for planned in (n_planned(name, samples),)
        )

    def missing_indices(self, question_id: str, samples: float) -> tuple[int, ...]:
        """The sample indices 0 … `n_planned`-1 that are still missing for this question."""
        bits, beyond = self._bits.get(question_id, 0), self._beyond.get(question_id, ())
        indices = range(n_planned(question_id, samples))
        return tuple(index for index in indices if not (bits >> index & 1 or index in beyond))

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, tuple) or len(key) != 2:
            return False
        name, index = key
        if not 0 <= index < MAX_SAMPLES:
            return index in self._beyond.get(name, ())
        return bool(self._bits.get(name, 0) >> index & 1)

    def __iter__(self) -> Iterator[Key]:
        for name, bits in self._bits.items():
            yield from (Key(name, index) for index, digit in enumerate(reversed(f"{bits:b}")) if digit == "1")
        for name, indices in self._beyond.items():
            yield from (Key(name, index) for index in sorted(indices))

    def __len__(self) -> int:
        return sum(map(int.bit_count, self._bits.values())) + sum(map(len, self._beyond.values()))


def n_planned(question_id: str, samples: float) -> int:
    """The number of samples of a question if `samples` are planned per question; the fractional part of `samples` is
    the share of questions that get one more.

    The ids alone determine which these are, so shards and sessions have the same plan, and a larger number only adds
    samples.
    """
    whole = math.floor(samples)
    return whole + (whole < samples and codec.sample_seed(0, question_id, -1) < (samples - whole) * 2**31)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The questions in a run and the planned number of samples."""

    samples: int | float
    """Samples per question. For example, 1.25 means two samples for a quarter of the questions (selected by ID) and one
    sample for the rest.
    """
    question_ids: list[str] | None = None
    """IDs of the selected questions, in order; None means all questions."""

    def total(self, question_ids: Collection[str]) -> int:
        """The total number of expected samples of these questions."""
        return sum(n_planned(question_id, self.samples) for question_id in question_ids)

    def n_stored(self, keys: KeySet, question_ids: Iterable[str]) -> int:
        """How many of the expected samples of these questions are among `keys`."""
        return keys.count_within(question_ids, self.samples)


class Task(NamedTuple):
    """The key of one sample of a run that is to be requested or is half written."""

    benchmark: str
    question_id: str
    sample_index: int


class Missing(NamedTuple):
    """The samples of one question that must still be requested. indices: ascending, at least one."""

    benchmark: str
    question_id: str
    indices: tuple[int, ...]


def missing_samples(benchmark: str, question_ids: Iterable[str], samples: float, on_disk: Set[Key]) -> list[Missing]:
    """Return the samples 0 … `n_planned`-1 of each question that are not in `on_disk`, in the order of `question_ids`.

    Other keys in `on_disk` (of other questions or with higher indices) are ignored.
    """
    keys = on_disk if isinstance(on_disk, KeySet) else KeySet(on_disk)
    all_indices = tuple(range(int(samples)))  # One tuple for all questions without a stored sample, to save memory.
    return [
        Missing(benchmark, question_id, all_indices if indices == all_indices else indices)
        for question_id in question_ids
        if (indices := keys.missing_indices(question_id, samples))
    ]
