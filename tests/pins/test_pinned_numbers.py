"""Pins of all numbers that are stated of 200 stored runs: `score`, `compare`, `verify` and `plan`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pins.held import TO_WRITE, hold, read
from tests.pins.numbers import pinned
from tests.pins.stage import alone

COVERING = {"00", "01", "04", "06", "12", "15", "21", "22", "29", "36", "41", "43", "44", "46", "47", "49"}
"""Families that together reach each branch of `harness` that all 50 reach."""


@pytest.mark.slow
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.wide)], ids=["covering", "all"])
def test_every_number_of_the_stored_runs_is_as_pinned(every: bool, tmp_path: Path) -> None:
    families = pinned.families() if every or pinned.NUMBERS.stem in TO_WRITE else COVERING
    with alone(tmp_path):
        pinned.opened(tmp_path, families)
        of_others = {name for name in read(pinned.NUMBERS) if pinned.family(name) not in families}
        hold(pinned.NUMBERS, dict(pinned.lines(tmp_path)), but=of_others)
