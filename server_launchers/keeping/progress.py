"""The progress of a start, and the lines that tell it to a person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

BEAT_SECONDS = 15.0
"""Seconds between two lines of output while the phase stays the same."""


@dataclass(frozen=True)
class StartProgress:
    """The progress of a start."""

    seconds: float
    """Seconds since the start."""
    phase: str
    """The work of the engine, by its log; else the event that the start is waiting for."""
    line: str
    """The last line of the log, safe to print."""


OnProgress = Callable[[StartProgress], None]


class Heartbeat:
    """Prints a line when the phase changes, and one every `BEAT_SECONDS` while it stays."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._phase = ""
        self._next = 0.0

    def __call__(self, progress: StartProgress) -> None:
        if progress.phase != self._phase or progress.seconds >= self._next:
            self._phase = progress.phase
            self._next = progress.seconds + BEAT_SECONDS
            self._say(f"{progress.seconds:5.0f} s  {progress.phase}")
