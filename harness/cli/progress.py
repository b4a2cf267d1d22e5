"""How a run's progress is shown: one line that is redrawn on a terminal, plain lines now and then elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from harness.generation.progress import Progress

PLAIN_SECONDS = 10.0
"""Between two lines where the output is no terminal."""

REDRAW_SECONDS = 0.2


class ProgressLine:
    """A callback for `generate`; standard error, so that standard output stays the result's."""

    def __init__(self) -> None:
        self._tty = sys.stderr.isatty()
        self._due = 0.0
        self._shown: Progress | None = None
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        self._last = progress
        if now < self._due:
            return
        self._due = now + (REDRAW_SECONDS if self._tty else PLAIN_SECONDS)
        self._show(progress)

    def close(self) -> None:
        """End the line, with the last state on it."""
        if self._last is not None and self._last is not self._shown:
            self._show(self._last)
        if self._tty and self._shown is not None:
            click.echo(err=True)

    def _show(self, progress: Progress) -> None:
        self._shown = progress
        text = line(progress)
        if self._tty:
            click.echo(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", nl=False, err=True)
        else:
            click.echo(text, err=True)


def line(progress: Progress) -> str:
    """Samples done of all, tokens/s, in flight, failures, ETA."""
    parts = [f"{progress.done}/{progress.total} samples"]
    if progress.total:
        parts[0] += f" ({progress.done / progress.total:.0%})"
    if progress.tokens_per_s is not None:
        parts.append(f"{progress.tokens_per_s:,.0f} tokens/s")
    parts.append(f"{progress.in_flight} in flight")
    if progress.truncated:
        parts.append(f"{progress.truncated} truncated")
    if progress.failures:
        parts.append(f"{progress.failures} failed requests")
    if progress.given_up:
        parts.append(f"{progress.given_up} given up")
    present = [e.state for e in progress.endpoints if e.state != "left"]
    n_waiting = len(present) - present.count("open")
    if n_waiting:
        parts.append(f"{n_waiting} of {len(present)} endpoints waiting")
    if progress.stopping:
        parts.append("stopping: no new requests")
    elif progress.paused:
        parts.append("paused: `harness ctl … resume` goes on")
    elif progress.eta_s is not None and progress.done < progress.total:
        parts.append(f"{duration(progress.eta_s)} left")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """`42 s`, `12 min`, `3 h 05 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
