"""Planned looks of a gate: after which rounds they happen, and at which levels they test.

The test statistic is a Brownian motion whose time at each look is the look's information (Lan and DeMets 1983,
Biometrika 70:659). Two hypotheses are tested on the same path: one without drift, rejected below, and one with a
downward drift, rejected above. No I/O.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from harness.scoring.stats import Array

MAX_LOOKS = 64
"""Largest number of planned looks; more looks would hardly decide earlier."""

EARLY = 0.75
"""The fraction of the false alarms that the looks before the last share. A fraction of 1 would leave none for the last
look, which finds most of the losses near the required power.
"""

REACH, WIDTH = 14.0, 0.004
"""Range and step of the grid on which the paths are integrated."""


def planned_looks(most: int) -> tuple[int, ...]:
    """The rounds after which a run of at most `most` rounds is tested; the last one is `most`.

    The run is tested after every round, or every few rounds if there would be more than `MAX_LOOKS` tests.
    """
    stride = math.ceil(most / MAX_LOOKS)
    return (*range(stride, most, stride), most)


class Boundaries(NamedTuple):
    """For each look, the number of standard errors beyond which a hypothesis is rejected: below, the one without drift;
    above, the one with drift.
    """

    below: tuple[float, ...]
    above: tuple[float, ...]


@lru_cache(maxsize=1024)
def boundaries(times: tuple[float, ...], below: float, above: float, power: float, drift: float) -> Boundaries:
    """The boundaries at each look, for a run that stops when it crosses one of them.

    times: the information of each look, increasing, on any scale. below, above: the total chances of a false rejection,
    shared by all looks. A fraction t of the information spends t^power of `above` (Kim and DeMets 1987, Biometrika
    74:149); `below` spends `EARLY` times the fraction of runs that have ended, and the rest at the last look. drift:
    downward, in standard errors of the last look, above 0. The density of the paths that have not ended at an
    earlier look is integrated numerically (Armitage, McPherson and Rowe 1969, J. R. Stat. Soc. A 132:235).
    """
    x = np.arange(-REACH, REACH + WIDTH / 2, WIDTH)
    lags, size = WIDTH * np.arange(1 - len(x), len(x)), 21600
    alive = np.zeros((2, len(x)))  # under each hypothesis
    alive[:, len(x) // 2] = 1 / WIDTH  # All paths start at 0.
    found: list[tuple[float, float]] = []
    spent, before, ended = [0.0, 0.0], 0.0, 0.0
    for look in times:
        # The density of the paths at this look: each has moved by a normal step since the last look.
        time = look / times[-1]
        steps = np.exp(-((lags + np.array([[0.0], [drift]]) * (time - before)) ** 2) / (2 * (time - before)))
        moved = np.fft.irfft(np.fft.rfft(alive, size) * np.fft.rfft(steps, size), size)[:, len(x) - 1 : 2 * len(x) - 1]
        alive = np.maximum(moved * WIDTH / math.sqrt(2 * math.pi * (time - before)), 0.0)
        root = math.sqrt(time)
        share = above * time**power
        high = max(-_end(alive[1][::-1], share - spent[1], x), -drift * time / 2)
        ended += float(alive[0][x > high].sum()) * WIDTH
        part = below * (1.0 if look == times[-1] else EARLY * ended)
        low = _end(alive[0], part - spent[0], x)
        # A result closer to this hypothesis than to the other does not reject it, unless a single test would.
        low = min(low, max(-drift * time / 2, -NormalDist().inv_cdf(1 - below) * root))
        spent, before = [part, share], time
        found.append((-low / root, (high + drift * time) / root))
        alive = np.where((x >= low) & (x <= high), alive, 0.0)
    return Boundaries(*zip(*found, strict=True))


def _end(density: Array, share: float, x: Array) -> float:
    """The point below which this share of the density lies, interpolated between grid points."""
    outside = np.cumsum(density) * WIDTH
    i = int(np.searchsorted(outside, share))
    if i == len(x):
        return float(x[-1])
    inner = outside[i - 1] if i else 0.0
    return float(x[i] - WIDTH * (0.5 - (share - inner) / max(outside[i] - inner, 1e-300)))
