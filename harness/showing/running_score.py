"""The accuracy of a run under way, as far as a scorer beside it, or one before, has graded it."""

from __future__ import annotations

import os

import msgspec

from harness.core import codec
from harness.core.reading import open_untrusted
from harness.runs.layout import RunFolder

MAX_BYTES = 16 * 1024 * 1024
"""A larger scores.json is passed over."""


class RunningScore(msgspec.Struct, frozen=True):
    """What of a `scores.json` matters here, without the packages that compute one."""

    accuracy: float
    n_samples: int
    sampling_interval: tuple[float, float] | None = None


class RunningScores:
    """Reads a run's scores again when they have changed."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[int, RunningScore | None]] = {}

    def look(self, benchmarks: list[str]) -> dict[str, RunningScore]:
        """By benchmark; those without a score, or with one that cannot be read, are left out."""
        found = {}
        for name in benchmarks:
            path = self._folder.benchmark(name).scores
            try:
                written = path.stat().st_mtime_ns
            except OSError:
                continue
            seen = self._seen.get(name)
            if seen is None or seen[0] != written:
                seen = self._seen[name] = written, self._read(name)
            if seen[1] is not None:
                found[name] = seen[1]
        return found

    def _read(self, name: str) -> RunningScore | None:
        try:
            with open_untrusted(self._folder.benchmark(name).scores) as file:
                if os.fstat(file.fileno()).st_size > MAX_BYTES:
                    return None
                return codec.decode(file.read(), RunningScore)
        except (OSError, codec.DecodeError):
            return None
