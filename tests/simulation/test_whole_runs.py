"""Thousands of whole runs, each from a seed; `make simulate WHAT=runs SEEDS=n` plays more of them."""

from __future__ import annotations

import pytest

from tests.budget import examples
from tests.simulation.session import broken, told

SEEDS = examples(1_000)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_every_promise_is_kept_whatever_goes_wrong() -> None:
    seed = next((seed for seed in range(SEEDS) if broken(seed)), None)
    if seed is not None:
        pytest.fail(f"{told(seed)}\nAll of it: make simulate WHAT=runs SEED={seed}", pytrace=False)
