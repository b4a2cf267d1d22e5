"""`harness score --track`, with the real trackers in their own places on this disk, read back by the tools."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.runs import RunFolder
from harness.scoring.score import Score
from tests.conftest import CHECKOUT
from tests.exports.graded_runs import varied, write_run
from tests.servers import environments

KEY = "sk-not-to-be-seen-anywhere-0123456789"


@pytest.fixture(scope="module")
def python() -> Path:
    return environments.python_of(environments.TRACKERS)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Its system prompt is longer than the facts that are told, its extra body holds a key."""
    identity = {"extra_body": {"api_key": KEY}, "system_prompt": "Think. " * 100, "seed": 7}
    return write_run(tmp_path / "run", {"own": varied(), "gym:b@c": varied("gym:b@c")}, identity=identity)


def tracked(python: Path, run: RunFolder, tool: str, **environment: str) -> None:
    """The run told twice, as after a second scoring."""
    for _ in range(2):
        printed = program(
            python, run, "-m", "harness", "score", str(run.path), "--track", tool, "--json", **environment
        )
        assert {score["benchmark"] for score in json.loads(printed)} == {"own", "gym:b@c"}


def program(python: Path, run: RunFolder, *words: str, **environment: str) -> str:
    given = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OPENAI_API_KEY": KEY, **environment}
    done = subprocess.run([python, *words], cwd=run.path.parent, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def check(run: RunFolder, facts: dict[str, Any], scores: dict[str, Any]) -> None:
    """What came back is what the run's files hold."""
    score = Score.load(run.benchmark("gym:b@c"))
    assert score is not None
    assert score.accuracy.sampling is not None
    assert scores["gym:b_at_c/accuracy"] == pytest.approx(score.accuracy.value)
    assert scores["gym:b_at_c/accuracy_sampling_low"] == pytest.approx(score.accuracy.sampling[0])
    assert scores["gym:b_at_c/pass_at_2"] == pytest.approx(score.pass_at[2].value)
    assert scores["own/n_missing"] == 2
    assert facts["model"] == "org/model-7b"
    assert float(facts["own.sampling.temperature"]) == 0.6
    assert facts["own.system_prompt"].startswith("sha256:")
    assert facts["own.extra_body.api_key"] == "[hidden]"


def nowhere(folder: Path, *texts: str) -> None:
    """None of the texts stands in a file of the tracker's."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    for text in texts:
        assert not [file for file in files if text.encode() in file.read_bytes()], text


def test_wandb_offline(python: Path, run: RunFolder, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    tracked(python, run, "wandb", WANDB_MODE="offline", WANDB_DIR=str(store))
    files = sorted(store.glob("wandb/offline-run-*/run-*.wandb"))
    assert len({file.name for file in files}) == 1, "told twice, it is one entry"
    nowhere(store, KEY, "boxed", "What is 0", "--track")


def test_mlflow_in_sqlite(python: Path, run: RunFolder, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    variables = {"MLFLOW_TRACKING_URI": f"sqlite:///{store}/mlflow.db", "MLFLOW_EXPERIMENT_NAME": "mine"}
    tracked(python, run, "mlflow", **variables)
    code = """
import json
from mlflow import MlflowClient
client = MlflowClient()
(run,) = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
assert run.info.status == "FINISHED" and run.info.run_name == "run", run.info
print(json.dumps([run.data.params, run.data.metrics]))
"""
    check(run, *json.loads(program(python, run, "-c", code, **variables)))
    nowhere(store, KEY, "boxed", "What is 0", "--track")


def test_trackio_on_this_disk(python: Path, run: RunFolder, tmp_path: Path) -> None:
    store = tmp_path / "store"
    tracked(python, run, "trackio", TRACKIO_DIR=str(store))
    code = """
import json, trackio
from trackio.sqlite_storage import SQLiteStorage
(run,) = trackio.Api().runs("reasoning-harness")
assert run.name.startswith("run-"), run.name
scores = SQLiteStorage.get_logs(run.project, run.name, run_id=run.id)[-1]
print(json.dumps([run.config, scores], default=str))
"""
    check(run, *json.loads(program(python, run, "-c", code, TRACKIO_DIR=str(store))))
    nowhere(store, KEY, "boxed", "What is 0", "--track")
