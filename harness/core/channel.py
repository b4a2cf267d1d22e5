"""The channel for warnings and for what a command is waiting for. Any package may use it.

The command line prints both; otherwise they go to Python's `logging`, to the logger `harness`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

QUIET_S = 3.0
"""Longest wait, in seconds, that a command does not mention."""

Show = Callable[[str], None]


def _log(sentence: str) -> None:
    """Pass a warning to Python's logging."""
    import logging

    logging.getLogger("harness").warning("%s", sentence)


def _log_note(sentence: str) -> None:
    import logging

    logging.getLogger("harness").info("%s", sentence)


_shows: list[tuple[Show, Show]] = [(_log, _log_note)]
"""(receives the warnings, receives the notes); the last pair is used. A list, not a context variable, because the
sentences of all threads go to the same place.
"""


def warn(sentence: str) -> None:
    """Warn about a fact that the user should know: a setting that is rarely intended, a file that was left out."""
    _shows[-1][0](sentence)


def note(sentence: str) -> None:
    """Say what a command does or waits for."""
    _shows[-1][1](sentence)


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """A `with` block that may take a long time: after `QUIET_S` seconds, a line says `waiting for WHAT`."""
    timer = threading.Timer(QUIET_S, note, (f"waiting for {what}",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def warnings_to(show: Show, note: Show = _log_note) -> Iterator[None]:
    """A `with` block in which `show` receives the warnings of all threads, and `note` the notes."""
    _shows.append((show, note))
    try:
        yield
    finally:
        _shows.remove((show, note))
