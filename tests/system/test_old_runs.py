"""Runs that an older version left behind, and that no pin resumes, are resumed and scored."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.testing import FakeServer
from tests.system.command import harness
from tests.system.old_runs import FOLDERS, answer, words

PINNED = {"card", "own-file", "completions"}
"""By `tests/pins/scenes/score.py`."""


@pytest.mark.parametrize("old", [path for path in sorted(FOLDERS.glob("*/*")) if path.name not in PINNED], ids=str)
def test_an_old_run_is_resumed_by_the_command_that_began_it(tmp_path: Path, old: Path) -> None:
    shutil.copytree(old, tmp_path / "run")
    (samples,) = (tmp_path / "run").glob("*/samples.jsonl")
    before = samples.read_bytes()

    with FakeServer(answer) as server:
        done = harness(tmp_path, *words(old.name, server.base_url, "run"))
        n_asked = sum(request.method == "POST" for request in server.requests)

    assert done.code == 0, done.err
    after = samples.read_bytes()
    records = [json.loads(line) for line in after.splitlines()]
    assert after.startswith(before)
    assert n_asked == len(records) - len(before.splitlines()) > 0
    assert len({(record["question_id"], record["sample_index"]) for record in records}) == len(records)
    assert harness(tmp_path, "score", "run").code == 0
    assert harness(tmp_path, *words(old.name, server.base_url, "run"), "--temperature", "0.123").code == 3
