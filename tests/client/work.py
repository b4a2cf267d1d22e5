"""How work grows with its size, by the CPU time of this thread."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

FACTOR = 16
"""Times that the larger work is larger."""

SLACK = 5
"""Times that linear work may seem to take longer than its size says; quadratic work takes `FACTOR` times longer."""

TRIES = 3
"""The least time of so many counts: whatever else the machine does only adds to it."""

LEAST_S = 0.0005
"""Seconds of CPU below which the smaller work cannot be measured: it counts as taking so long."""


def grows_linearly(work: Callable[[int], object], n: int) -> bool:
    """Whether `work(FACTOR * n)` takes about `FACTOR` times as long as `work(n)`, or is too short to tell."""
    gc.collect()
    bound = SLACK * FACTOR * max(min(_seconds(work, n) for _ in range(TRIES)), LEAST_S)
    return any(_seconds(work, FACTOR * n) < bound for _ in range(TRIES))


def _seconds(work: Callable[[int], object], n: int) -> float:
    """CPU time of this thread for `work(n)`."""
    began = time.thread_time()
    work(n)
    return time.thread_time() - began
