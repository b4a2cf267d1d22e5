"""A real vLLM on the CPU that is killed or stopped: how streams end, what comes back, and that nothing stays."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from server_launchers.keeping import servers
from server_launchers.keeping.supervisor import RunningServer
from tests.servers.conftest import engine_processes
from tests.servers.running import (
    engine,
    health,
    kill,
    launched,
    named,
    samples,
    wait_for_restart,
    wait_until,
)
from tests.servers.specs import VLLM_ENVIRONMENT, vllm_spec
from tests.servers.streams import ask, begin
from tests.system.command import argv, environment


@pytest.fixture(scope="module")
def mortal(vllm: Path, models: Path, private_state: Path) -> Iterator[RunningServer]:
    """One to kill: it is started again as often as the tests need."""
    with launched(vllm_spec(vllm, models, restarts=9, name="mortal")) as server:
        yield server


def test_a_killed_worker_ends_streams_with_an_error_and_the_server_comes_back(mortal: RunningServer) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    stream, reading = begin(mortal)
    api = engine(mortal).pid
    kill(named(mortal, "VLLM::Worker")[0])
    wait_until(lambda: health(mortal) != 200, "the server to notice")
    reading.join()
    # A stream that fails ends as one that is complete does, but for the finish reason.
    assert (stream.status, stream.finish, stream.done, stream.broken) == (200, [], True, None)
    assert stream.errors[0]["code"] == 500
    # The API process answers for some seconds more, then ends by itself.
    wait_for_restart(mortal, restarts + 1)
    assert engine(mortal).pid != api
    assert ask(mortal).finish == ["stop"]


def test_a_killed_api_process_takes_its_engine_along_and_the_server_comes_back(mortal: RunningServer) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    stream, reading = begin(mortal)
    workers = [*named(mortal, "VLLM::Worker"), *named(mortal, "VLLM::EngineCore")]
    assert len(workers) == 2
    kill(engine(mortal).pid)
    reading.join()
    assert (stream.finish, stream.done, stream.broken) == ([], False, "RemoteProtocolError")
    wait_for_restart(mortal, restarts + 1)
    assert not set(workers) & set(engine_processes())


def test_a_run_outlives_the_death_of_its_server(mortal: RunningServer, tmp_path: Path) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    words = ("run", "demo:8", "--limit", "25", "--base-url", mortal.base_urls[0], "--out", "run", "--no-canary")
    folder = tmp_path / "run" / "demo"
    running = subprocess.Popen(
        argv(*words, "--concurrency", "4", "--timeout", "60", "--attempts", "20"),
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: (folder / "samples.jsonl").exists() and len(samples(tmp_path / "run")) > 8, "first samples")
    kill(named(mortal, "VLLM::Worker")[0])
    wait_for_restart(mortal, restarts + 1)
    _, err = running.communicate()
    assert running.returncode == 0, err
    stored = samples(tmp_path / "run")
    assert len({(one["question_id"], one["sample_index"]) for one in stored}) == len(stored) == 200


def test_stopping_in_the_middle_of_a_stream_leaves_nothing(vllm: Path, models: Path, private_state: Path) -> None:
    before = set(engine_processes())
    with launched(vllm_spec(vllm, models)) as server:
        stream, reading = begin(server)
        server.stop()
        reading.join()
    # Which of the three comes is a race inside vLLM; none of them is a finished reply.
    assert set(stream.finish) <= {"abort"}
    assert stream.finish or stream.errors or stream.broken
    assert set(engine_processes()) <= before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_launcher_that_is_killed_leaves_nothing(
    vllm: Path, models: Path, private_state: Path, tmp_path: Path, number: int
) -> None:
    before = set(engine_processes())
    options = ["--python", str(vllm), "--device", "cpu", "--eager", "--max-model-len", "2048", "--name", "doomed"]
    options += [word for name, value in VLLM_ENVIRONMENT.items() for word in ("--env", f"{name}={value}")]
    words = argv("serve", "vllm", vllm_spec(vllm, models).model, *options)
    running = subprocess.Popen(words, stderr=subprocess.PIPE)
    state = servers.path_of("doomed")
    # In the middle of a start: the engine has made its own children.
    wait_until(lambda: state.exists() and len(set(engine_processes()) - before) >= 3, "a start to be under way")
    running.send_signal(number)
    running.communicate()
    wait_until(lambda: set(engine_processes()) <= before, "everything to end")
