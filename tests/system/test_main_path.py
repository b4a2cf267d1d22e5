"""Serve → run → score → report on a real model, and what survives when it is killed or interrupted."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.benchmarks.prompts import BOXED
from harness.testing import FakeServer, Pause, Request, Step, completion, models
from server_launchers.keeping.launch import RunningServer
from tests.embedded import THINKING_GRAMMAR
from tests.system.command import Result, harness, start

pytestmark = pytest.mark.server


SHORT = ("--max-tokens", "12", "--no-canary", "--no-fingerprint")
"""Most tests here are about what is stored, not about what the model says; a fingerprint is 128 tokens more."""


def samples(run: Path, benchmark: str) -> list[dict[str, Any]]:
    """The records of a run's journal, as a stranger would read them."""
    return [json.loads(line) for line in (run / benchmark / "samples.jsonl").read_bytes().split(b"\n") if line]


def keys(run: Path, benchmark: str) -> Counter[tuple[str, int]]:
    """How often each key stands in the journal."""
    return Counter((s["question_id"], s["sample_index"]) for s in samples(run, benchmark))


class ToyServer(NamedTuple):
    """A server whose replies cost nothing, for what does not depend on what a model says. Fields as `RunningServer`."""

    base_urls: tuple[str, ...]
    model: str


@pytest.fixture
def toy_server() -> Iterator[ToyServer]:
    """It states a context of 2,048 tokens; each reply takes a tenth of a second."""

    def answer(request: Request) -> Iterator[Step]:
        if request.method == "GET":
            yield models("toy", max_model_len=2048)
        else:
            yield Pause(0.1)
            yield from completion(rf"So \boxed{{{request.number}}}", tokens=5)

    with FakeServer(answer) as server:
        yield ToyServer((server.base_url,), "toy")


def run_demo(folder: Path, server: RunningServer | ToyServer, *words: str) -> Result:
    """Run the demo benchmark into `folder`/run, with short replies where `words` ask for no others."""
    return harness(folder, "run", "demo", "--base-url", server.base_urls[0], "--out", "run", *SHORT, *words)


def test_a_run_is_sampled_scored_and_reported(tmp_path: Path, embedded_server: RunningServer) -> None:
    words = ("--limit", "2", "--samples", "2", "--max-tokens", "12")
    done = harness(tmp_path, "run", "demo", "--base-url", embedded_server.base_urls[0], "--out", "run", *words)
    assert done.code == 0, done.err
    assert "complete: 4 of 4 samples" in done.err

    stored = samples(tmp_path / "run", "demo")
    assert len(keys(tmp_path / "run", "demo")) == len(stored) == 4
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


def test_the_same_command_owes_nothing_and_more_samples_extend(tmp_path: Path, toy_server: ToyServer) -> None:
    assert run_demo(tmp_path, toy_server, "--limit", "3", "--samples", "1").code == 0
    before = (tmp_path / "run" / "demo" / "samples.jsonl").read_bytes()
    again = run_demo(tmp_path, toy_server, "--limit", "3", "--samples", "1")
    assert again.code == 0
    assert "no sample is missing" in again.err
    more = run_demo(tmp_path, toy_server, "--limit", "3", "--samples", "3")
    assert more.code == 0
    after = (tmp_path / "run" / "demo" / "samples.jsonl").read_bytes()
    assert after.startswith(before)
    assert sorted(keys(tmp_path / "run", "demo").values()) == [1] * 9


def test_nothing_owed_needs_no_server(tmp_path: Path, toy_server: ToyServer) -> None:
    assert run_demo(tmp_path, toy_server, "--limit", "2", "--samples", "1").code == 0
    words = ("run", "demo", "--limit", "2", "--samples", "1", "--out", "run", "--model", toy_server.model, *SHORT)
    for server in (("--base-url", "http://127.0.0.1:9"), ()):
        done = harness(tmp_path, *words, *server)
        assert done.code == 0, done.err
        assert "no sample is missing" in done.err


@pytest.mark.parametrize(
    ("flag", "value", "shown"),
    [
        ("--temperature", "0.9", "sampling.temperature: 0.6 → 0.9"),
        ("--max-tokens", "32", "sampling.max_tokens: 12 → 32"),
        ("--seed", "7", "seed: 0 → 7"),
        ("--system-prompt", "Be brief.", "system_prompt"),
        ("--prompt", "boxed", "prompt"),
    ],
)
def test_changed_settings_are_refused_and_the_difference_is_shown(
    tmp_path_factory: pytest.TempPathFactory, toy_server: ToyServer, flag: str, value: str, shown: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "refused"
    folder.mkdir(exist_ok=True)
    if not (folder / "run").exists():
        assert run_demo(folder, toy_server, "--limit", "1", "--samples", "1").code == 0
    done = run_demo(folder, toy_server, "--limit", "1", "--samples", "1", flag, value)
    assert done.code == 3
    assert shown in done.err


def test_killed_three_times_it_ends_with_each_key_once(tmp_path: Path, toy_server: ToyServer) -> None:
    words = [
        "run",
        "demo",
        "--base-url",
        toy_server.base_urls[0],
        "--out",
        "run",
        "--limit",
        "8",
        "--samples",
        "2",
        *SHORT,
    ]
    chance = random.Random()  # a new moment each time the suite runs
    kept: set[tuple[str, int]] = set()
    for _ in range(3):
        child = start(tmp_path, words)
        time.sleep(chance.uniform(0.3, 2.0))
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        if (tmp_path / "run" / "demo" / "samples.jsonl").exists():
            whole = (tmp_path / "run" / "demo" / "samples.jsonl").read_bytes().split(b"\n")[:-1]
            found = {(s["question_id"], s["sample_index"]) for s in map(json.loads, whole)}
            assert kept <= found
            kept = found
    done = harness(tmp_path, *words)
    assert done.code == 0, done.err
    counted = keys(tmp_path / "run", "demo")
    assert counted == Counter({(f"demo-{q:02d}", i): 1 for q in range(1, 9) for i in range(2)})


def test_a_second_client_on_one_run_is_refused_by_name(tmp_path: Path, toy_server: ToyServer) -> None:
    words = ["run", "demo", "--base-url", toy_server.base_urls[0], "--out", "run", "--samples", "20", *SHORT]
    child = start(tmp_path, words)
    try:
        while not (tmp_path / "run" / "demo" / "samples.jsonl").exists():
            assert child.poll() is None
            time.sleep(0.05)
        second = harness(tmp_path, *words)
        assert second.code == 3
        assert str(child.pid) in second.err
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def test_thinking_is_kept_apart_from_the_answer(tmp_path: Path, thinking_server: RunningServer) -> None:
    words = ["--base-url", thinking_server.base_urls[0], "--out", "run", "--limit", "1", "--samples", "1"]
    body = json.dumps({"grammar": THINKING_GRAMMAR})
    done = harness(tmp_path, "run", "demo", *words, "--extra-body", body, "--max-tokens", "256", *SHORT[2:])
    assert done.code == 0, done.err
    for sample in samples(tmp_path / "run", "demo"):
        assert sample["reasoning"].strip()
        assert "<think>" not in (sample["text"] or "")


def test_max_tokens_over_the_context_is_refused_with_both_ways_out(tmp_path: Path, toy_server: ToyServer) -> None:
    done = run_demo(tmp_path, toy_server, "--max-tokens", "32768")
    assert done.code == 2
    assert "max_tokens" in done.err
    assert "fit_context" in done.err
    fitted = run_demo(tmp_path, toy_server, "--max-tokens", "32768", "--fit-context", "--limit", "1", "--dry-run")
    assert fitted.code == 0


def test_a_set_runs_by_its_file(tmp_path: Path, toy_server: ToyServer) -> None:
    rows = [{"prompt": f"{n}+{n}?\n{BOXED}", "answer": 2 * n} for n in range(3)]
    (tmp_path / "aime24.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = harness(
        tmp_path, "run", "--data", "aime24.jsonl", "--question-key", "prompt", "--answer-key", "answer",
        "--limit", "3", "--samples", "1", "--max-tokens", "8", "--base-url", toy_server.base_urls[0],
        "--out", "aime", *SHORT[2:],
    )  # fmt: skip
    assert done.code == 0, done.err
    questions = [json.loads(line) for line in (tmp_path / "aime/aime24/questions.jsonl").read_bytes().splitlines()]
    assert all(q["messages"][-1]["content"].count(r"\boxed{}") == 1 for q in questions)
    scored = harness(tmp_path, "score", "aime", "--json")
    assert scored.code == 0, scored.err
    assert json.loads(scored.out)[0]["n_samples"] == 3


def test_completions_prompts_work_too(tmp_path: Path, embedded_server: RunningServer) -> None:
    done = run_demo(tmp_path, embedded_server, "--api", "completions", "--limit", "1", "--samples", "1")
    assert done.code == 0, done.err
    assert all(s["text"] for s in samples(tmp_path / "run", "demo"))


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


def test_fewer_samples_than_are_stored_are_said_at_once(tmp_path: Path, toy_server: ToyServer) -> None:
    assert run_demo(tmp_path, toy_server, "--limit", "2", "--samples", "3").code == 0
    fewer = run_demo(tmp_path, toy_server, "--limit", "3", "--samples", "1")
    said = "warning: demo: the score will use 1 sample a question and leave out 4 stored ones beyond them"
    assert said in fewer.err
    assert fewer.err.index(said) < fewer.err.index("complete: 3 of 3 samples")
    assert "ask for 3 to use all" in fewer.err
    as_many = run_demo(tmp_path, toy_server, "--limit", "2", "--samples", "3")
    assert "leave out" not in as_many.err
