"""A real sglang-router before two real llama.cpp servers. Skipped where no interpreter has the router."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from server_launchers.engines.engine import SGLANG_ROUTER
from server_launchers.lifecycle import launch
from server_launchers.lifecycle.launch import RunningServer
from server_launchers.machine import processes
from tests.embedded import MODEL, embedded_spec
from tests.patience import PATIENCE_SECONDS, until
from tests.server_launchers.test_deaths_during_runs import samples
from tests.system.command import start

pytestmark = pytest.mark.server


@pytest.fixture(scope="session")
def router_python() -> Path:
    """An interpreter whose environment has sglang-router: this one, or the one that HARNESS_ROUTER_PYTHON names."""
    python = Path(os.environ.get("HARNESS_ROUTER_PYTHON", sys.executable))
    code = "import sglang_router.launch_router"
    found = subprocess.run([python, "-c", code], capture_output=True, check=False)
    if found.returncode != 0:
        pytest.skip(f"{python} has no sglang-router; set HARNESS_ROUTER_PYTHON to an interpreter that has it")
    return python


@pytest.fixture(scope="module")
def routed(smollm2: Path, private_state: Path, router_python: Path) -> Iterator[RunningServer]:
    spec = embedded_spec(
        smollm2, name="routed", dp=2, dp_mode="router", router_python=router_python, restarts=1, max_sequences=2
    )
    with launch.launch(spec) as server:
        yield server


def ask(server: RunningServer) -> httpx.Response:
    body = {"model": server.model, "max_tokens": 4, "messages": [{"role": "user", "content": "Hi"}]}
    return httpx.post(f"{server.base_urls[0]}/v1/chat/completions", json=body, timeout=60)


def test_a_router_gives_one_address_that_works(routed: RunningServer) -> None:
    assert len(routed.base_urls) == 1
    assert [ask(routed).status_code for _ in range(4)] == [200] * 4
    known = routed.state
    assert known is not None
    assert [member.role for member in known.members] == ["engine", "engine", "router"]
    assert known.versions["sglang_router"] == SGLANG_ROUTER.version
    assert {"xllamacpp", "devices"} <= set(known.versions)


def test_a_killed_replica_comes_back_and_the_router_takes_it_again(routed: RunningServer) -> None:
    known = routed.state
    assert known is not None
    assert known.members[0].pid is not None
    os.kill(known.members[0].pid, signal.SIGKILL)

    def is_back() -> bool:
        workers = httpx.get(f"{routed.base_urls[0]}/workers").json()["workers"]
        again = routed.state
        return again is not None and again.members[0].restarts == 1 and all(one["is_healthy"] for one in workers)

    # Requests go to the other one at once, or a few fail while the router has not noticed.
    until(is_back, "the router to take the restarted replica back", pause=0.1)
    assert [ask(routed).status_code for _ in range(4)] == [200] * 4


def test_a_router_that_dies_ends_the_server(smollm2: Path, private_state: Path, router_python: Path) -> None:
    spec = embedded_spec(smollm2, dp=1, dp_mode="router", engine="llama_cpp", router_python=router_python)
    with launch.launch(spec.replace(dp=2, max_sequences=1)) as server:
        known = server.state
        assert known is not None
        router = known.members[-1]
        assert router.pid is not None
        os.kill(router.pid, signal.SIGKILL)
        until(lambda: server.ended, "the server to end")
        everyone = [member.pid for member in known.members]
    assert [pid for pid in everyone if pid is not None and processes.start_of(pid)] == []


@pytest.mark.timeout(600)
def test_a_run_through_a_router_ends_complete_though_a_replica_dies(
    smollm2: Path, private_state: Path, router_python: Path, tmp_path: Path
) -> None:
    spec = embedded_spec(smollm2, dp=2, dp_mode="router", router_python=router_python, max_sequences=2)
    with launch.launch(spec) as server:
        words = ["run", "demo:2", "--limit", "16", "--base-url", server.base_urls[0], "--model", MODEL]
        running = start(tmp_path, [*words, "--out", "run", "--concurrency", "4", "--max-tokens", "48", "--no-canary"])
        until(lambda: len(samples(tmp_path)) > 5, "the first samples")
        known = server.state
        assert known is not None
        assert known.members[0].pid is not None
        os.kill(known.members[0].pid, signal.SIGKILL)
        assert len(samples(tmp_path)) < 32
        _, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 0, err
    stored = samples(tmp_path)
    assert len({(one["question_id"], one["sample_index"]) for one in stored}) == len(stored) == 32
    # Streams of the dead replica end as if complete, but for the finish reason.
    assert all(one["finish_reason"] in ("stop", "length") for one in stored)
