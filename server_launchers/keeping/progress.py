"""How a start is going, and how a person is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

BEAT_SECONDS = 15.0
"""A line is said this often, in seconds, while the phase stays the same."""


@dataclass(frozen=True)
class StartProgress:
    """How a start is going."""

    seconds: float
    """Seconds since the start."""
    phase: str
    """The engine's work by its log, else the thing that is waited for."""
    line: str
    """The last line of the log, safe to print."""


OnProgress = Callable[[StartProgress], None]


class Heartbeat:
    """Says one line when the phase changes, and one every `BEAT_SECONDS` while it stays."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._phase = ""
        self._next = 0.0

    def __call__(self, progress: StartProgress) -> None:
        if progress.phase != self._phase or progress.seconds >= self._next:
            self._phase = progress.phase
            self._next = progress.seconds + BEAT_SECONDS
            self._say(f"{progress.seconds:5.0f} s  {progress.phase}")
