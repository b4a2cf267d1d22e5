"""Serve → run → score → report on a real model, and a server that is started and stopped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.runs import RunFolder, locked
from harness.testing import FakeServer, completion, models
from server_launchers.lifecycle.launch import RunningServer
from tests.system.command import harness

pytestmark = pytest.mark.server


SHORT = ("--max-tokens", "12", "--no-canary")
"""The tests are about what is stored, not about what the model says."""


def samples(run: Path, benchmark: str) -> list[dict[str, Any]]:
    """The records of a run's journal, as a stranger would read them."""
    return [json.loads(line) for line in (run / benchmark / "samples.jsonl").read_bytes().split(b"\n") if line]


def test_a_run_is_sampled_scored_and_reported(tmp_path: Path, embedded_server: RunningServer) -> None:
    words = ("--limit", "2", "--samples", "2", "--max-tokens", "12")
    done = harness(tmp_path, "run", "demo", "--base-url", embedded_server.base_urls[0], "--out", "run", *words)
    assert done.code == 0, done.err
    assert "complete: 4 of 4 samples" in done.err

    stored = samples(tmp_path / "run", "demo")
    assert len({(s["question_id"], s["sample_index"]) for s in stored}) == len(stored) == 4
    first = stored[0]
    assert first["finish_reason"] in ("stop", "length")
    assert first["usage"]["completion_tokens"] > 0
    assert 0 < first["timing"]["first_token"] <= first["timing"]["total"]
    assert first["server_model"] == embedded_server.model
    assert len({s["seed"] for s in stored}) == 4

    scored = harness(tmp_path, "score", "run", "--json")
    assert scored.code == 0, scored.err
    (score,) = json.loads(scored.out)
    assert score == {"run": "run"} | json.loads((tmp_path / "run" / "demo" / "scores.json").read_bytes())
    assert (score["n_questions"], score["n_samples"], score["n_missing"]) == (2, 4, 0)
    assert score["accuracy"]["value"] == score["n_correct"] / 4
    assert score["pass_at"]["1"] == score["accuracy"]
    verdicts = [json.loads(line) for line in (tmp_path / "run" / "demo" / "grades.jsonl").read_bytes().splitlines()]
    assert sum(v["verdict"] == "correct" for v in verdicts) == score["n_correct"]

    reported = harness(tmp_path, "report", "run")
    assert reported.code == 0, reported.err
    assert f"{100 * score['accuracy']['value']:.1f}" in reported.out
    assert "<script" not in (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "demo" in (tmp_path / "run" / "report.md").read_text("utf-8")


def test_the_running_server_is_found_and_stopped(tmp_path: Path, smollm2: Path) -> None:
    served = harness(tmp_path, "serve", "llama_cpp", str(smollm2), "--detach", "--threads", "1", "--name", "mine")
    try:
        assert served.code == 0, served.err
        assert "mine" in harness(tmp_path, "serve", "status").out
        done = harness(tmp_path, "run", "demo:1", "--limit", "2", "--out", "run", *SHORT)
        assert done.code == 0, done.err
        environment = json.loads((tmp_path / "run" / "manifest.json").read_bytes())["environment"]
        assert (environment["server"], environment["engine"]) == ("mine", "llama_cpp")
        assert "--threads 1" in environment["commands"][0]
        assert environment["xllamacpp"]
    finally:
        stopped = harness(tmp_path, "serve", "stop", "mine")
    assert stopped.code == 0, stopped.err
    assert "no server is running" in harness(tmp_path, "serve", "status").out


def test_fewer_samples_are_reported_at_once_and_a_second_client_refused(tmp_path: Path) -> None:
    with FakeServer(lambda r: [models("toy")] if r.method == "GET" else completion("2", tokens=5)) as server:
        words = ["run", "demo", "--base-url", server.base_url, "--out", "run", *SHORT]
        assert harness(tmp_path, *words, "--limit", "2", "--samples", "3").code == 0
        with locked(RunFolder(tmp_path / "run")):
            refused = harness(tmp_path, *words, "--limit", "3", "--samples", "1")
        fewer = harness(tmp_path, *words, "--limit", "3", "--samples", "1")
        as_many = harness(tmp_path, *words, "--limit", "2", "--samples", "3")
    assert (refused.code, f"in use by process {os.getpid()} on " in refused.err) == (3, True)
    said = "warning: demo: the score will use 1 sample per question and ignore the other 4 that are stored"
    assert fewer.err.index(said) < fewer.err.index("complete: 3 of 3 samples")
    assert ["request 3 to use all" in fewer.err, "leave out" in as_many.err] == [True, False]
