"""Histories of nights that are new every day: sound nights seldom fail, and a loss is found as often late as early.

For: harness.deciding.simulation, harness.deciding.nights, harness.gates.metrics.
"""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest

from bench import histories
from tests.budget import SEED

LOUD = ("noise twice as stated", "lasting noise", "t noise")
"""Kinds whose noise is not what the policy states: more false alarms than promised are theirs."""


@pytest.mark.slow
def test_histories_of_the_day_keep_the_promise() -> None:
    """`make simulate WHAT=nights` plays many settings of each kind; here one of four kinds."""
    kinds = random.Random(SEED).sample([*histories.KINDS], 4)
    rows = dict(histories.rows(zlib.crc32(SEED.encode()), 1, 20, kinds))
    table = np.array([*rows.values()])
    promised = [8.0 if name.startswith(LOUD) else 2.0 for name in rows]
    assert (np.nan_to_num(table[:, 0]) <= promised).all(), (SEED, rows)
    early, late = table[:, 4:6].T
    assert (np.nan_to_num(late, nan=100.0) >= 0.9 * np.nan_to_num(early) - 5).all(), (SEED, rows)


def test_a_kind_of_history_is_told_from_its_twin() -> None:
    """A fall that is there fails the gate; a rise that goes again does not."""
    rows = dict(histories.rows(1, 1, 8, ("step", "better")))
    assert rows["step, benchmark"][2] > 80 > 5 > rows["better, benchmark"][0]
