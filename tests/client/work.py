"""How work grows with its size, by the CPU time of this thread."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

FACTOR = 16
"""Times that the larger work is larger."""

SLACK = 5
"""Times that linear work may seem to take longer than its size says; quadratic work takes `FACTOR` times longer."""

LEAST_S = 0.0005
"""Seconds of CPU below which the smaller work cannot be measured: it counts as taking so long."""


def grows_linearly(work: Callable[[int], object], n: int) -> bool:
    """Whether `work(FACTOR * n)` takes about `FACTOR` times as long as `work(n)`, or is too short to tell."""
    return _seconds(work, FACTOR * n) < SLACK * FACTOR * max(_seconds(work, n), LEAST_S)


def _seconds(work: Callable[[int], object], n: int) -> float:
    """The least CPU time of three tries."""
    tries = []
    gc.collect()
    for _ in range(3):
        began = time.thread_time()
        work(n)
        tries.append(time.thread_time() - began)
    return min(tries)
