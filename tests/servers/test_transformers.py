"""The real server of transformers on the CPU, started by its launcher."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from server_launchers.keeping.launch import RunningServer
from server_launchers.spec import ServerSpec
from tests.servers.running import engine, harness, kill, known, launched, samples, wait_for_restart
from tests.servers.specs import OFFLINE
from tests.servers.streams import ask


@pytest.fixture(scope="module")
def server(transformers: Path, models: Path, private_state: Path) -> Iterator[RunningServer]:
    spec = ServerSpec(
        engine="transformers",
        model=str(models / "scripted"),
        python=transformers,
        device="cpu",
        environment=OFFLINE,
        restarts=9,
    )
    with launched(spec) as server:
        yield server


def test_a_stream_has_usage_in_its_last_chunk_and_no_done(server: RunningServer) -> None:
    reply = ask(server)
    assert reply.finish == ["stop"]
    assert r"\boxed{42}" in reply.text()
    assert not reply.done
    assert reply.broken is None
    assert [len(event["choices"]) for event in reply.events if event.get("usage")] == [1]


def test_an_unknown_field_is_refused(server: RunningServer) -> None:
    reply = ask(server, no_such_field=1)
    assert reply.status == 422
    assert "no_such_field" in reply.body


def test_a_run_of_the_harness_is_complete(server: RunningServer, tmp_path: Path) -> None:
    words = ("run", "demo:1", "--limit", "4", "--out", "run", "--no-canary", "--max-tokens", "64")
    done = harness(tmp_path, *words, "--base-url", server.base_urls[0], "--model", server.model, "--concurrency", "2")
    assert done.code == 0, done.err
    assert len(samples(tmp_path / "run")) == 4


def test_the_state_tells_the_version(server: RunningServer) -> None:
    assert known(server).versions["transformers"] == "5.23.0"


def test_a_killed_server_comes_back(server: RunningServer) -> None:
    restarts = engine(server).restarts
    kill(engine(server).pid)
    wait_for_restart(server, restarts + 1)
    assert ask(server).finish == ["stop"]
