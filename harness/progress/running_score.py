"""The accuracy of a run in progress, read from the scores.json that `harness score` has written for it.

A score is shown only if the questions file next to it is still the run's own; otherwise it is for other questions.
"""

from __future__ import annotations

import msgspec

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.files import read_untrusted
from harness.runs import questions
from harness.runs.layout import RunFolder
from harness.runs.manifest import Manifest

MAX_BYTES = 16 * 1024 * 1024
"""A scores.json larger than this, in bytes, is ignored."""


class UndecidedBounds(msgspec.Struct, frozen=True):
    """The range of possible accuracies, depending on the verdicts on the undecided samples."""

    low: float
    """Accuracy if all undecided samples were wrong, as a fraction."""
    high: float
    """Accuracy if all undecided samples were correct, as a fraction."""


class RunningEstimate(msgspec.Struct, frozen=True):
    """The accuracy so far."""

    value: float
    """Fraction correct."""
    sampling: tuple[float, float] | None = None
    """95% interval if the same questions were sampled again; None if unknown."""


# Not `Score`: importing it would load numpy and more.
class RunningScore(msgspec.Struct, frozen=True):
    """The fields of `scores.json` that are shown while a run is in progress."""

    accuracy: RunningEstimate | None
    """Fraction correct; None if there are no samples."""
    n_samples: int
    """Number of samples covered by the score."""
    n_undecided: int = 0
    """Number of samples that the grader could not decide."""
    undecided_bounds: UndecidedBounds | None = None
    """Range of possible accuracies, depending on the verdicts on the undecided samples; None if no samples are
    undecided.
    """


# Not `Score`: importing it would load numpy and more.
class RunningScores:
    """The scores of a run; each file is read again when it has changed."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[tuple[int, int], RunningScore | None]] = {}
        """Benchmark → (when its score and question files were written, its score) at the last check."""

    def current(self, benchmarks: list[str]) -> dict[str, RunningScore]:
        """Return the scores by benchmark, omitting scores that are missing, unreadable or for other questions."""
        scores = {}
        for name in benchmarks:
            files = self._folder.benchmark(name)
            try:
                written = files.scores.stat().st_mtime_ns, files.questions.stat().st_mtime_ns
            except OSError:
                continue
            seen = self._seen.get(name)
            if seen is None or seen[0] != written:
                seen = self._seen[name] = written, self._read(name)
            if seen[1] is not None:
                scores[name] = seen[1]
        return scores

    def _read(self, name: str) -> RunningScore | None:
        """Read the score of a benchmark; None if it is missing, unreadable or for other questions."""
        files = self._folder.benchmark(name)
        try:
            questions.read_planned(files, Manifest.load(self._folder).benchmarks[name])
            return codec.decode(read_untrusted(files.scores, MAX_BYTES, "too large"), RunningScore)
        except (OSError, KeyError, StoreError, codec.DecodeError):
            return None
