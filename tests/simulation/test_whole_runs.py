"""Thousands of whole runs, each from a seed; `make simulate WHAT=runs SEEDS=n` plays more of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.budget import examples
from tests.simulation.session import broken, told

SEEDS = examples(1_000)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_every_promise_is_kept_whatever_goes_wrong() -> None:
    seed = next((seed for seed in range(SEEDS) if broken(seed)), None)
    if seed is not None:
        end = "\n".join(told(seed).splitlines()[-60:])
        pytest.fail(f"{end}\n\nAll of it: make simulate WHAT=runs SEED={seed}")


def test_the_same_seed_is_the_same_run_in_every_process() -> None:
    code = "from tests.simulation.session import broken, told; print(*map(told, range(40)))"
    checkout = Path(__file__).parents[2]
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=checkout, env=os.environ | {"PYTHONHASHSEED": salt, "PYTHONPATH": str(checkout)},
            capture_output=True, text=True, check=True,
        ).stdout
        for salt in ("1", "2")
    ]  # fmt: skip
    assert runs[0] == runs[1]
    assert "ask q0:0" in runs[0]
