"""A real SGLang on the CPU that is killed or stopped: how streams end, what comes back, and that nothing stays."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server_launchers.keeping.supervisor import RunningServer
from tests.servers.conftest import engine_processes
from tests.servers.running import (
    RUN,
    assert_complete,
    engine,
    harness,
    health,
    kill,
    known,
    launched,
    named,
    wait_for_restart,
    wait_until,
)
from tests.servers.specs import sglang_spec
from tests.servers.streams import ask, begin, begin_on_both

SCHEDULER = "sglang::scheduler"


@pytest.fixture(scope="module")
def mortal(sglang: Path, models: Path, private_state: Path) -> Iterator[RunningServer]:
    """One to kill: it is started again as often as the tests need."""
    spec = sglang_spec(sglang, models, restarts=9, name="mortal", reasoning_parser="deepseek_r1")
    with launched(spec) as server:
        yield server


def test_a_killed_scheduler_cuts_streams_after_a_stall_and_the_server_comes_back(mortal: RunningServer) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    stream, reading = begin(mortal)
    kill(named(mortal, SCHEDULER)[0])
    reading.join()
    assert (stream.status, stream.finish, stream.errors, stream.done) == (200, [], [], False)
    assert stream.broken == "RemoteProtocolError"
    wait_for_restart(mortal, restarts + 1)
    assert ask(mortal).finish == ["stop"]


def test_a_killed_http_process_takes_its_scheduler_along_and_the_server_comes_back(mortal: RunningServer) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    stream, reading = begin(mortal)
    schedulers = named(mortal, "sglang::")
    assert len(schedulers) == 2
    kill(engine(mortal).pid)
    reading.join()
    assert (stream.finish, stream.broken) == ([], "RemoteProtocolError")
    wait_for_restart(mortal, restarts + 1)
    assert not set(schedulers) & set(engine_processes())


def test_told_to_end_it_finishes_what_it_is_saying_first(mortal: RunningServer) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    stream, reading = begin(mortal, tokens=1500)
    kill(engine(mortal).pid, signal.SIGTERM)
    reading.join()
    assert (stream.finish, stream.done, stream.broken) == (["length"], True, None)
    wait_for_restart(mortal, restarts + 1)


def test_stopping_does_not_wait_for_a_client_that_stays(sglang: Path, models: Path, private_state: Path) -> None:
    before = set(engine_processes())
    with launched(sglang_spec(sglang, models, stop_grace=3.0)) as server:
        stream, reading = begin(server)
        log = known(server).log
        begun = time.monotonic()
        server.stop()
        assert time.monotonic() - begun >= 3
        reading.join()
    # TERM reaches the scheduler too, which ends; the HTTP process waits for its client until KILL.
    assert (stream.finish, stream.broken) == ([], "RemoteProtocolError")
    assert "still running after 3 s, KILL" in log.read_text()
    assert set(engine_processes()) <= before


def test_harness_serve_and_run_work_with_replicas_behind_the_router(
    sglang: Path, routers: Path, models: Path, private_state: Path, tmp_path: Path
) -> None:
    spec = sglang_spec(
        sglang, models, engine="sglang_router", dp=2, router_python=routers, reasoning_parser="deepseek_r1", restarts=1
    )
    with launched(spec) as server:
        assert [member.role for member in known(server).members] == ["engine", "engine", "router"]
        assert len(server.base_urls) == 1
        # Those that live on are read to their end, and SGLang takes four times vLLM's time for a token here.
        streams, n_doomed = begin_on_both(server, tokens=6000)
        kill(named(server, SCHEDULER)[0])
        for _, reading in streams:
            reading.join()
        # The router takes the streams of a dead replica for ended; those of the other one go on.
        assert sorted(stream.finish for stream, _ in streams) == [[]] * n_doomed + [["length"]] * (
            len(streams) - n_doomed
        )
        done = harness(tmp_path, *RUN, "--base-url", server.base_urls[0])
        assert done.code == 0, done.err
        assert_complete(tmp_path / "run", 20)
