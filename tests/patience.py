"""How long a test waits for what comes by itself. Only a failure takes so long, so a busy machine breaks no test."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 240
"""Longest wait for an event that takes a moment on a quiet machine; less than a test may take as a whole."""


def until(condition: Callable[[], object], what: str, pause: float = 0.02, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until the condition holds, at most so many seconds; `what` is waited for, and named where it never comes."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s in vain for {what}"
        time.sleep(pause)
