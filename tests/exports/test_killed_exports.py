"""An export that was killed leaves nothing behind once the next one has ended.

For: harness.exports.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.exports import export, formats
from tests.budget import rounds
from tests.exports.graded_runs import varied, write_run
from tests.faults.snapshots import every_state, put, state_of

FROM_THE_HUB = "math500"


@pytest.mark.slow
@pytest.mark.parametrize("to", formats())
def test_what_a_killed_export_left_is_removed_by_the_next(to: str, tmp_path: Path) -> None:
    run, out = write_run(tmp_path / "run", {FROM_THE_HUB: varied(FROM_THE_HUB)}), tmp_path / "out"
    with every_state(out) as states:
        export(run, to, out, i_know=True)
    torn = [state for state in states if any(name.endswith(".tmp") for name in state)]
    assert torn, "an export was seen under way"
    for state in random.sample(torn, min(len(torn), rounds(2))):
        put(state, out)
        export(run, to, out, i_know=True)
        assert not [name for name in state_of(out) if name.endswith(".tmp")]
