"""Pins of all numbers that are stated of 200 stored runs: `score`, `compare`, `verify` and `plan`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pins.held import hold
from tests.pins.numbers import pinned
from tests.pins.stage import alone


@pytest.mark.slow
def test_every_number_of_the_stored_runs_is_as_pinned(tmp_path: Path) -> None:
    with alone(tmp_path):
        pinned.opened(tmp_path, pinned.families())
        hold(pinned.NUMBERS, dict(pinned.lines(tmp_path)))
