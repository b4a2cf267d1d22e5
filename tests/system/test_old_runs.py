"""Runs that an older version left behind are resumed, scored and protected as if today's version had made them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.testing import FakeServer
from tests.system.command import harness
from tests.system.old_runs import COMMANDS, FOLDERS, QUESTIONS, answer, words

VERSIONS = sorted(path.name for path in FOLDERS.iterdir())
CASES = [(version, name) for version in VERSIONS for name in COMMANDS if (FOLDERS / version / name).is_dir()]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(answer) as running:
        yield running


def left_behind(place: Path, version: str, name: str) -> Path:
    """A copy of the old run folder, and the file of questions that some of the runs ask."""
    (place / "questions.jsonl").write_text(QUESTIONS, encoding="utf-8")
    return Path(shutil.copytree(FOLDERS / version / name, place / "run"))


def identities(run: Path) -> dict[str, str]:
    """By benchmark, the text of its identity in the manifest."""
    manifest = json.loads((run / "manifest.json").read_bytes())
    return {name: json.dumps(record["identity"]) for name, record in manifest["benchmarks"].items()}


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in run.glob("*/samples.jsonl") for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize(("version", "name"), CASES)
def test_an_old_run_is_resumed_by_the_command_that_began_it(
    tmp_path: Path, server: FakeServer, version: str, name: str
) -> None:
    run = left_behind(tmp_path, version, name)
    (samples,) = run.glob("*/samples.jsonl")
    stored, identity, before = samples.read_bytes(), identities(run), len(records(run))

    done = harness(tmp_path, *words(name, server.base_url, "run"))

    assert done.code == 0, done.err
    after = records(run)
    posted = [request for request in server.requests if request.method == "POST"]
    assert before > 0
    assert len(posted) == len(after) - before > 0
    assert len({(r["question_id"], r["sample_index"]) for r in after}) == len(after)
    assert samples.read_bytes().startswith(stored)
    assert identities(run) == identity
    assert harness(tmp_path, "score", "run").code == 0


@pytest.mark.parametrize(("version", "name"), CASES)
def test_an_old_run_is_protected_from_other_settings(
    tmp_path: Path, server: FakeServer, version: str, name: str
) -> None:
    run = left_behind(tmp_path, version, name)
    before = {path: path.read_bytes() for path in run.glob("*/*.jsonl")}

    done = harness(tmp_path, *words(name, server.base_url, "run"), "--temperature", "0.123")

    assert done.code == 3
    assert "0.123" in done.err
    assert {path: path.read_bytes() for path in before} == before
