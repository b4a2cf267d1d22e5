"""Pins of all numbers that are stated of 200 stored runs: `score`, `compare`, `verify` and `plan`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.budget import share_of
from tests.pins.held import TO_WRITE, hold
from tests.pins.numbers import pinned
from tests.pins.stage import alone


@pytest.mark.slow
def test_every_number_of_the_stored_runs_is_as_pinned(tmp_path: Path) -> None:
    every = pinned.families()
    some = every if pinned.NUMBERS.stem in TO_WRITE else sorted(share_of(every))
    with alone(tmp_path):
        pinned.opened(tmp_path, some)
        now = dict(pinned.lines(tmp_path))
    assert len(now) >= 4 * len(some)
    hold(pinned.NUMBERS, now, whole=some == every)
