"""How a start is going, and how a person is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

BEAT_SECONDS = 15.0
"""Seconds between two lines while the phase stays the same."""


@dataclass(frozen=True)
class Progress:
    """How a start is going."""

    seconds: float
    """Since the start."""
    phase: str
    """What the log says is being done, else what is waited for."""
    line: str
    """The last line of the log, safe to print."""


OnProgress = Callable[[Progress], None]


class Heartbeat:
    """Says one line when the phase changes, and one every `BEAT_SECONDS` while it stays."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._phase = ""
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.phase != self._phase or progress.seconds >= self._next:
            self._phase = progress.phase
            self._next = progress.seconds + BEAT_SECONDS
            self._say(f"{progress.seconds:5.0f} s  {progress.phase}")
