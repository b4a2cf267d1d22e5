"""A run folder that was copied while the run went on: it opens and goes on to the whole run, or says why not.

For: harness.runs.lock, harness.runs.journal.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.runs import Manifest, RunFolder, RunLock
from harness.testing import FakeServer
from tests.budget import rounds
from tests.faults.able import able, sums
from tests.faults.snapshots import State, every_state, put
from tests.runs.test_runs_opening import run, texts
from tests.system.command import harness


def copied(states: Sequence[State], chance: random.Random) -> State:
    """A copy that took its time: each file as it stood at some moment after that of the file before it."""
    names = sorted({name for state in states for name in state})
    chance.shuffle(names)
    moments = sorted(chance.randrange(len(states)) for _ in names)
    return {
        name: states[moment][name]
        for name, moment in zip(names, moments, strict=True)
        if name in states[moment] and not name.endswith(".tmp")
    }


@pytest.mark.slow
@pytest.mark.fuzz
def test_a_folder_copied_while_the_run_went_on_opens_or_says_why_not(tmp_path: Path) -> None:
    sums(tmp_path, 4)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    with FakeServer(able(0.5)) as server:
        words = [*run(tmp_path, server.base_url), "--concurrency", "1"]
        with every_state(tmp_path / "out") as states:
            assert harness(tmp_path, *words).code == 0
        whole = texts(tmp_path / "out")
        for number in range(rounds(5)):
            put(copied(states, chance), tmp_path / "out")
            hint = f"seed {seed}, copy {number}"
            for reader in ("doctor", "status", "score", "report"):
                # 1: a copy without any grade has no score to report.
                assert harness(tmp_path, reader, "out").code in ((0, 1, 3) if reader == "report" else (0, 3)), hint
            done = harness(tmp_path, *words)
            if done.code == 3:
                assert "manifest" in done.err, hint
            else:
                assert done.code == 0, (hint, done.err)
                assert texts(tmp_path / "out") == whole, hint


def test_status_of_a_copied_run_does_not_name_the_process_that_holds_the_original(quick_path: Path) -> None:
    first = RunFolder(quick_path / "run")
    with RunLock(first):
        Manifest.start(first, model="m", harness_version="1").save(first)
        shutil.copytree(first.path, quick_path / "copy")
        assert f"process {os.getpid()}" in harness(quick_path, "status", "run").out
        of_copy = harness(quick_path, "status", "copy")
    assert of_copy.code == 0
    assert "process" not in of_copy.out
