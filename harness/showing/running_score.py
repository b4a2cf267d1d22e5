"""The accuracy of a run under way, from the scores.json that a scorer beside it, or an earlier one, wrote."""

from __future__ import annotations

import os

import msgspec

from harness.core import codec
from harness.core.files import open_untrusted
from harness.runs.layout import RunFolder

MAX_BYTES = 16 * 1024 * 1024
"""A larger scores.json is ignored."""


class RunningScore(msgspec.Struct, frozen=True):
    """The fields of a `scores.json` that progress shows; importing `Score` would load the packages that compute one."""

    accuracy: float
    n_samples: int
    sampling_interval: tuple[float, float] | None = None


class RunningScores:
    """The scores of a run; each file is read again when it has changed."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[int, RunningScore | None]] = {}

    def look(self, benchmarks: list[str]) -> dict[str, RunningScore]:
        """Scores by benchmark; benchmarks whose score is missing or cannot be read are left out."""
        scores = {}
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
                scores[name] = seen[1]
        return scores

    def _read(self, name: str) -> RunningScore | None:
        try:
            with open_untrusted(self._folder.benchmark(name).scores) as file:
                if os.fstat(file.fileno()).st_size > MAX_BYTES:
                    return None
                return codec.decode(file.read(), RunningScore)
        except (OSError, codec.DecodeError):
            return None
